#include "graph/pytorch/network_py.hpp"

#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"
#include "graph/domain_sets.hpp"
#include "graph/functions.hpp"
#include "graph/loop_operators.hpp"
#include "graph/operators.hpp"
#include "graph/pytorch/frame.hpp"
#include "version.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;

std::string tuple(const Ints& values) {
    std::string out = "(";
    for (std::int64_t v : values) out += fmt::format("{}, ", v);
    if (values.size() > 1)
        out.resize(out.size() - 2);
    else if (values.size() == 1)
        out.pop_back();
    return out + ")";
}

std::string digit(const Digit& d) { return fmt::format("({}, {}, {})", python_string(d.axis), d.stride, d.radix); }

std::string parts_of(const Domain& domain) {
    std::vector<std::string> parts;
    for (const DomainPart& p : domain.parts) {
        std::vector<std::string> ranges, diagonals;
        for (const DigitRange& r : p.ranges) ranges.push_back(fmt::format("({}, {}, {})", digit(r.digit), r.lo, r.hi));
        for (const DigitPair& d : p.diagonals) diagonals.push_back(fmt::format("({}, {})", digit(d.first), digit(d.second)));
        parts.push_back(fmt::format("([{}], [{}])", join(ranges, ", "), join(diagonals, ", ")));
    }
    return "[" + join(parts, ", ") + "]";
}

// The source of every output element as one index list a dimension, when they are independent of each other.
std::string separable(const Ints& sources, const Shape& shape) {
    Ints strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    std::vector<Ints> maps;
    for (std::size_t d = 0; d < shape.size(); ++d) maps.emplace_back(static_cast<std::size_t>(shape[d]), -1);
    auto place = [&](std::int64_t flat, std::size_t d) { return static_cast<std::size_t>(flat / strides[d] % shape[d]); };
    for (std::size_t i = 0; i < sources.size(); ++i)
        if (sources[i] >= 0)
            for (std::size_t d = 0; d < shape.size(); ++d) maps[d][place(static_cast<std::int64_t>(i), d)] = static_cast<std::int64_t>(place(sources[i], d));
    for (std::size_t i = 0; i < sources.size(); ++i) {
        std::int64_t flat = 0;
        for (std::size_t d = 0; d < shape.size() && flat >= 0; ++d) {
            const std::int64_t from = maps[d][place(static_cast<std::int64_t>(i), d)];
            flat = from < 0 ? -1 : flat + from * strides[d];
        }
        if (flat != sources[i]) return "";
    }
    std::string out;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        bool own = true;
        for (std::size_t i = 0; i < maps[d].size(); ++i) own = own && maps[d][i] == static_cast<std::int64_t>(i);
        if (!own) out += fmt::format("{}{}: [{}]", out.empty() ? "" : ", ", d, fmt::join(maps[d], ", "));
    }
    return "{" + out + "}";
}

// Runs (begin, count, step) of the flat list.
std::string runs_of(const Ints& sources) {
    std::string out;
    for (std::size_t i = 0; i < sources.size();) {
        std::size_t n = 1;
        const std::int64_t step = i + 1 < sources.size() ? sources[i + 1] - sources[i] : 0;
        while (i + n < sources.size() && sources[i + n] - sources[i + n - 1] == step) ++n;
        out += fmt::format("{}({}, {}, {})", out.empty() ? "" : ", ", sources[i], n, n > 1 ? step : 0);
        i += n;
    }
    return "[" + out + "]";
}

// Over the shape that the Restricted class has its output in.
std::string sources_of(const Node& node, const Shape& shape) {
    if (node.domain.restore == Restore::none) return "None";
    const Ints sources = output_sources(node.domain, axes_of(node));
    const std::string easy = separable(sources, shape);
    return easy.empty() ? runs_of(sources) : easy == "{}" ? "None" : easy;
}

struct Line {
    std::string module{};  // what is in __init__, if anything
    std::string call;      // what is in forward
};

std::string conv_arguments(const Node& n) {
    return fmt::format("{}, {}, {}, stride={}, padding={}, dilation={}, groups={}, bias={}", n.input_shapes[0][1], n.integer("out_channels"),
                       tuple(n.integers("kernel")), tuple(n.integers("stride")), tuple(n.integers("padding")), tuple(n.integers("dilation")),
                       n.integer("groups"), n.flag("bias") ? "True" : "False");
}

std::string reshape_arguments(const Node& n, const std::string& x) {
    std::vector<std::string> out;
    const Ints& shape = n.integers("shape");
    for (std::size_t i = 0; i < shape.size(); ++i) out.push_back(shape[i] == 0 ? fmt::format("{}.shape[{}]", x, i) : std::to_string(shape[i]));
    return join(out, ", ");
}

Line conv2d(const Node& n, const std::string& call) {
    if (n.domain.whole()) return {"nn.Conv2d(" + conv_arguments(n) + ")", call};
    return {fmt::format("RestrictedConv2d({}, parts={}, out={}, sources={})", conv_arguments(n), parts_of(n.domain),
                        tuple({n.shape[0], n.shape[2], n.shape[3]}), sources_of(n, n.shape)),
            call};
}

Line linear(const Node& n, const std::string& call) {
    const std::string arguments = fmt::format("{}, {}, bias={}", n.input_shapes[0].back(), n.integer("out_features"), n.flag("bias") ? "True" : "False");
    if (n.domain.whole()) return {"nn.Linear(" + arguments + ")", call};
    const std::int64_t rows = axes_of(n)[0].extent;
    return {fmt::format("RestrictedLinear({}, parts={}, rows={}, sources={})", arguments, parts_of(n.domain), rows, sources_of(n, {rows, n.shape.back()})),
            call};
}

Line matmul(const Node& n, const std::string& call, const std::string& a, const std::string& b) {
    if (n.domain.whole()) return {"", fmt::format("{} @ {}", a, b)};
    std::string extents;
    Shape out;
    for (const Axis& axis : axes_of(n)) {
        extents += fmt::format("{}{}: {}", extents.empty() ? "" : ", ", python_string(axis.name), axis.extent);
        if (!axis.reduction) out.push_back(axis.extent);
    }
    return {fmt::format("RestrictedMatmul({}, {{{}}}, sources={})", parts_of(n.domain), extents, sources_of(n, out)), call};
}

std::string pads(const Ints& before, const Ints& after) {  // PyTorch counts from the last dimension
    Ints all;
    for (std::size_t d = before.size(); d-- > 0;) all.push_back(before[d]), all.push_back(after[d]);
    return tuple(all);
}

Line uneven_pool(const Node& n, const std::string& x) {
    const std::string window = fmt::format("{}, {}", tuple(n.integers("kernel")), tuple(n.integers("stride"))),
                      sides = pads(n.integers("padding"), n.integers("padding_end"));
    if (n.op == "max_pool") return {"", fmt::format("F.max_pool2d(F.pad({}, {}, value=float('-inf')), {})", x, sides, window)};
    const std::string mean = fmt::format("F.avg_pool2d(F.pad({}, {}), {})", x, sides, window);
    return {"", n.flag("count_padding") ? mean : fmt::format("{} / F.avg_pool2d(F.pad(torch.ones_like({}), {}), {})", mean, x, sides, window)};
}

std::string slices(const Node& n) {
    std::vector<std::string> all;
    for (std::size_t d = 0; d < n.shape.size(); ++d) {
        const std::int64_t from = n.integers("starts")[d], to = n.integers("ends")[d], by = n.integers("steps")[d];
        all.push_back(fmt::format("{}:{}{}", from ? std::to_string(from) : "", to < n.input_shapes[0][d] ? std::to_string(to) : "",
                                  by > 1 ? fmt::format(":{}", by) : ""));
    }
    return "[" + join(all, ", ") + "]";
}

std::string expand_arguments(const Node& n) {
    std::vector<std::string> all;
    for (std::int64_t d : n.integers("shape")) all.push_back(d == 0 ? "-1" : std::to_string(d));
    return join(all, ", ");
}

std::string replaced(std::string text, std::string_view word, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size()) text.replace(at, word.size(), by);
    return text;
}

std::string function_words(const ElementFunction& f, const Node& n, const std::vector<std::string>& x) {
    std::string words = replaced(std::string(f.python), "{x}", x[0]);
    if (f.operands == 2) words = replaced(words, "{y}", x[1]);
    for (const FunctionParameter& p : f.parameters) words = replaced(words, fmt::format("{{{}}}", p.name), fmt::format("{}", n.real(p.name)));
    return words;
}

std::string loop_words(const LoopOperator& row, const Node& n, const std::vector<std::string>& x) {
    std::string words = replaced(std::string(row.python), "{x}", x[0]);
    if (row.inputs.size() == 2) words = replaced(words, "{y}", x[1]);
    for (const LoopAttribute& a : row.attributes)
        words = replaced(words, fmt::format("{{{}}}", a.spec.name),
                         a.spec.kind == AttrKind::integer ? std::to_string(n.integer(a.spec.name)) : tuple(n.integers(a.spec.name)));
    return words;
}

// `x` are the inputs' variables, `call` the node's own module applied to them.
Line line_of(const Node& n, const std::vector<std::string>& x, const std::string& call) {
    const std::string& op = n.op;
    if (op == "conv2d") return conv2d(n, call);
    if (op == "linear") return linear(n, call);
    if (op == "matmul") return matmul(n, call, x[0], x[1]);
    if (op == "batch_norm")
        return {fmt::format("nn.BatchNorm{}d({}, eps={})", n.shape.size() == 4 ? 2 : n.shape.size() == 5 ? 3 : 1, n.shape[1], n.real("eps")), call};
    if (op == "layer_norm") return {fmt::format("nn.LayerNorm({}, eps={})", n.shape.back(), n.real("eps")), call};
    if (op == "softmax") return {"", fmt::format("F.softmax({}, dim={})", x[0], n.integer("axis"))};
    if (op == "scale") return {"", fmt::format("{} * {}", x[0], n.real("value"))};
    if (op == "concat") return {"", fmt::format("torch.cat([{}], dim={})", join(x, ", "), n.integer("axis"))};
    if ((op == "max_pool" || op == "avg_pool") && n.integers("padding") != n.integers("padding_end")) return uneven_pool(n, x[0]);
    if (op == "max_pool")
        return {"", fmt::format("F.max_pool2d({}, {}, {}, {})", x[0], tuple(n.integers("kernel")), tuple(n.integers("stride")), tuple(n.integers("padding")))};
    if (op == "avg_pool")
        return {"", fmt::format("F.avg_pool2d({}, {}, {}, {}, count_include_pad={})", x[0], tuple(n.integers("kernel")), tuple(n.integers("stride")),
                                tuple(n.integers("padding")), n.flag("count_padding") ? "True" : "False")};
    if (op == "global_avg_pool") return {"", fmt::format("{}.mean((2, 3), keepdim=True)", x[0])};
    if (op == "flatten") return {"", fmt::format("torch.flatten({}, {})", x[0], n.integer("axis"))};
    if (op == "reshape") return {"", fmt::format("{}.reshape({})", x[0], reshape_arguments(n, x[0]))};
    if (op == "transpose") return {"", fmt::format("{}.permute{}", x[0], tuple(n.integers("order")))};
    if (op == "parameter")
        return {fmt::format("nn.Parameter(torch.empty{})", n.shape.empty() ? "(())" : tuple(n.shape)), fmt::format("get({})", python_string(n.name))};
    if (op == "identity") return {"", x[0]};
    if (op == "slice") return {"", x[0] + slices(n)};
    if (op == "pad") return {"", fmt::format("F.pad({}, {}, value={})", x[0], pads(n.integers("before"), n.integers("after")), n.real("value"))};
    if (op == "expand") return {"", fmt::format("{}.expand({})", x[0], expand_arguments(n))};
    if (op == "reduce_mean" || op == "reduce_sum")
        return {"", fmt::format("{}.{}({}, keepdim={})", x[0], op.substr(7), tuple(n.integers("axes")), n.flag("keepdims") ? "True" : "False")};
    if (op == "reduce_max") return {"", fmt::format("torch.amax({}, {}, keepdim={})", x[0], tuple(n.integers("axes")), n.flag("keepdims") ? "True" : "False")};
    if (op == "onnx") return {"", fmt::format("run_onnx({}, {}, [{}])", python_string(n.text("node")), n.integer("output"), join(x, ", "))};
    if (const ElementFunction* f = find_function(op)) return {"", function_words(*f, n, x)};
    if (const LoopOperator* row = find_loop_operator(op)) return {"", loop_words(*row, n, x)};
    throw InternalFault("network_py has no words for the operator '" + op + "'");
}

// A Python name for every tensor: letters and digits, no keyword, no two alike.
class Variables {
public:
    const std::string& of(const std::string& tensor) {
        if (auto it = names_.find(tensor); it != names_.end()) return it->second;
        std::string name;
        for (char c : tensor) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
        if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "t" + name;
        static const std::set<std::string> taken{"find",     "float",  "run_onnx", "RestrictedMatmul",
                                                 "self",     "get",    "torch",    "nn",
                                                 "F",        "and",    "as",       "assert",
                                                 "async",    "await",  "break",    "class",
                                                 "continue", "def",    "del",      "elif",
                                                 "else",     "except", "finally",  "for",
                                                 "from",     "global", "if",       "import",
                                                 "in",       "is",     "lambda",   "nonlocal",
                                                 "not",      "or",     "pass",     "raise",
                                                 "return",   "try",    "while",    "with",
                                                 "yield",    "None",   "True",     "False"};
        while (taken.contains(name) || used_.contains(name)) name += "_";
        used_.insert(name);
        return names_[tensor] = name;
    }

private:
    std::map<std::string, std::string> names_;
    std::set<std::string> used_;
};

}  // namespace

std::string network_py(const Graph& graph, const std::map<std::string, std::string>& about) {
    Variables variables;
    std::vector<std::string> inputs, shapes;
    for (const GraphInput& in : graph.inputs)
        inputs.push_back(variables.of(in.name)), shapes.push_back(fmt::format("{} {}", comment_text(in.name), tuple(in.shape)));
    std::string modules, calls;
    bool restricted = false, opaque = false;
    for (const Node& node : graph.nodes) {
        opaque = opaque || node.op == "onnx";
        std::vector<std::string> x;
        for (const std::string& in : node.inputs) x.push_back(variables.of(in));
        const Line line = line_of(node, x, fmt::format("get({})({})", python_string(node.name), join(x, ", ")));
        restricted = restricted || !node.domain.whole();
        if (!line.module.empty()) modules += fmt::format("        put(self, {}, {})\n", python_string(node.name), line.module);
        calls += fmt::format("        {} = {}\n", variables.of(node.name), line.call);
    }
    std::vector<std::string> outputs;
    for (const std::string& out : graph.outputs) outputs.push_back(variables.of(out));

    std::string text = replaced(std::string(network_head_py), "@NAME@", comment_text(graph.name));
    text = replaced(replaced(replaced(text, "@VERSION@", std::string(version)), "@CALL@", join(inputs, ", ")), "@SHAPES@", join(shapes, ", "));
    if (restricted)
        text += network_domain_py;
    else
        text = replaced(text, "import functools\nimport itertools\n", "");
    if (opaque) text += network_opaque_py;
    if (!about.empty()) {
        text += "# About the run that made this network.\nABOUT = {\n";
        for (const auto& [key, words] : about) text += fmt::format("    {}: {},\n", python_string(key), python_string(words));
        text += "}\n\n\n";
    }
    text += "class Network(nn.Module):\n    def __init__(self):\n        super().__init__()\n" + modules + "\n    def forward(self, " + join(inputs, ", ") +
            "):\n        get = lambda name: find(self, name)\n" + calls;
    text += "        return " + join(outputs, ", ") + "\n";
    return text + std::string(network_tail_py);
}

}  // namespace loopegg
