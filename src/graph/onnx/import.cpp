#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/number.hpp"
#include "graph/functions.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/element_types.hpp"
#include "graph/onnx/evaluate/budget.hpp"
#include "graph/onnx/evaluate/evaluate.hpp"
#include "graph/onnx/fuse.hpp"
#include "graph/onnx/importer.hpp"
#include "graph/onnx/upgrade.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

// Elements of all constants that are computed while reading: so many, and so many for each element that the file holds. A short file would unfold to
// gigabytes otherwise.
constexpr std::int64_t folded_at_least = std::int64_t{1} << 24, folded_for_each = 4;
// The same for weights, of which every node has its own, although several may name one tensor of the file.
constexpr std::int64_t weights_at_least = std::int64_t{1} << 27, weights_for_each = 16;

// Names of element types, as ONNX numbers them.
std::string type_name(int type) {
    static const char* names[] = {"no tensor", "float32", "uint8",   "int8",   "uint16", "int16",     "int32",      "int64",   "string",
                                  "bool",      "float16", "float64", "uint32", "uint64", "complex64", "complex128", "bfloat16"};
    return type >= 0 && type < 17 ? names[type] : fmt::format("of type {}", type);
}

bool is_narrow(int type) { return type == onnx_type::float16 || type == onnx_type::bfloat16; }

std::int64_t elements_held(const OnnxTensor& t) { return static_cast<std::int64_t>(t.floats.size() + t.doubles.size() + t.integers.size()); }

std::int64_t elements_held(const OnnxModel& model) {
    std::int64_t all = 0;
    for (const auto& [name, tensor] : model.initializers) all += elements_held(tensor);
    for (const OnnxNode& node : model.nodes)
        for (const auto& [name, value] : node.attrs)
            if (const auto* tensor = std::get_if<OnnxTensor>(&value)) all += elements_held(*tensor);
    return all;
}

std::string name_of(const OnnxNode& node) { return node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name; }

}  // namespace

OnnxImporter::OnnxImporter(const std::string& file, OnnxModel onnx, const OnnxReading& how)
    : file_(file),
      onnx_(std::move(onnx)),
      how_(how),
      ours_(onnx_.producer == "loopegg"),
      held_(elements_held(onnx_)),
      unfolded_(folded_at_least + folded_for_each * held_) {}

Model OnnxImporter::run() {
    graph_.name = onnx_.name.empty() ? "imported" : onnx_.name;
    if (onnx_.opset < 7) fail(fmt::format("opset {} is too old, 7 or later is needed", onnx_.opset));
    if (onnx_.opset > newest_opset) fail(fmt::format("there is no opset {}", onnx_.opset));
    sort_nodes();
    if (const std::int64_t old = onnx_.opset; how_.upgrade && !ours_)
        if (std::string why = upgrade_opset(onnx_); !why.empty()) note(fmt::format("read unconverted in opset {}, not in {}: {}", old, upgraded_opset, why));
    graph_.opset = ours_ ? opset_before() : onnx_.opset;
    for (auto& [name, tensor] : onnx_.initializers)
        if (!constants_.emplace(name, std::move(tensor)).second) fail(fmt::format("there are two initializers '{}'", name));
    add_inputs();
    fold_constants();  // first: the patterns look at them
    take_described();
    fuse_patterns(onnx_, constants_);
    for (const OnnxNode& node : onnx_.nodes) read_.insert(node.inputs.begin(), node.inputs.end());
    for (const OnnxValue& output : onnx_.outputs) read_.insert(output.name);
    for (const OnnxNode& node : onnx_.nodes) convert(node);
    add_outputs();
    try {
        complete(graph_);
    } catch (const UserError& e) {
        fail(e.diagnostics()[0].message);
    }
    check_weights(graph_, weights_, file_);
    return {std::move(graph_), std::move(weights_), std::move(notes_)};
}

void OnnxImporter::fail(const std::string& message, const std::string& hint) const {
    throw UserError(Diagnostic{fmt::format("cannot import '{}': {}", file_, message), {}, hint});
}
void OnnxImporter::fail(const OnnxNode& node, const std::string& message, const std::string& hint) const {
    fail(fmt::format("{} '{}': {}", node.op, name_of(node), message), hint);
}

// Our own files state the opset of the file that their network came from, if it came from one.
std::int64_t OnnxImporter::opset_before() const {
    const auto found = onnx_.metadata.find("loopegg.opset");
    if (found == onnx_.metadata.end()) return 0;
    const auto declared = number_in<std::int64_t>(found->second);
    return declared && *declared >= oldest_opset && *declared < onnx_.opset ? *declared : onnx_.opset;
}

void OnnxImporter::note(std::string words) { notes_.push_back(std::move(words)); }

void OnnxImporter::add_inputs() {
    std::map<std::string, std::int64_t> symbols;  // sizes of named dimensions that are settled
    for (const auto& [name, given] : how_.shapes)
        if (std::none_of(onnx_.inputs.begin(), onnx_.inputs.end(), [&](const OnnxValue& in) { return in.name == name; })) {
            std::string known;
            for (const OnnxValue& in : onnx_.inputs)
                if (!constants_.contains(in.name)) known += (known.empty() ? "" : ", ") + in.name;
            fail(fmt::format("there is no input '{}' to give a shape to", name), fmt::format("its inputs: {}", known));
        }
    std::set<std::string> seen;
    for (const OnnxValue& in : onnx_.inputs) {
        if (!seen.insert(in.name).second) fail(fmt::format("there are two inputs '{}'", in.name));
        if (constants_.contains(in.name)) continue;  // old files list their weights here too
        auto given = how_.shapes.find(in.name);
        if (!in.has_shape && given == how_.shapes.end())
            fail(fmt::format("the input '{}' has no shape", in.name), fmt::format("give one: --shape {}=1x3x224x224", in.name));
        const bool carried = in.type == 6 || in.type == 7 || in.type == 9;
        if (is_narrow(in.type) && !how_.as_float32)
            fail(fmt::format("the input '{}' is {}: the model computes in it", in.name, type_name(in.type)), "--as-float32 computes in float32 instead");
        if (in.type != onnx_type::float32 && !carried && !is_narrow(in.type))
            fail(fmt::format("the input '{}' is {}; float32, int64, int32 and bool are read", in.name, type_name(in.type)));
        Shape shape = given == how_.shapes.end() ? in.shape : given->second;
        if (in.has_shape && shape.size() != in.shape.size())
            fail(fmt::format("the input '{}' has {} dimensions, the shape given has {}", in.name, in.shape.size(), shape.size()));
        for (std::size_t i = 0; i < shape.size(); ++i) {
            const std::string symbol = i < in.symbols.size() ? in.symbols[i] : "";
            const bool open = i < in.shape.size() && in.shape[i] <= 0;  // exporters write 0 and -1 for a size that is not settled
            if (open && in.shape[i] < -1) fail(fmt::format("dimension {} of the input '{}' is {}", i, in.name, in.shape[i]));
            if (in.has_shape && !open && shape[i] != in.shape[i])
                fail(fmt::format("dimension {} of the input '{}' is {} in the file, {} was given", i, in.name, in.shape[i], shape[i]));
            if (shape[i] <= 0 && symbols.contains(symbol)) shape[i] = symbols.at(symbol);
            if (shape[i] <= 0 && i == 0) {
                shape[i] = how_.batch > 0 ? how_.batch : 1;
                if (how_.batch <= 0)
                    note(fmt::format("the batch of the input '{}' is open{}: taken as 1 (--batch N or --shape say otherwise)", in.name,
                                     symbol.empty() ? "" : " ('" + symbol + "')"));
            }
            if (shape[i] <= 0) {
                std::string sizes;
                for (std::size_t d = 0; d < shape.size(); ++d)
                    sizes += (d ? "x" : "") + std::to_string(shape[d] > 0 ? shape[d] : d == 0 ? 1 : d == 1 && shape.size() == 4 ? 3 : 224);
                fail(fmt::format("dimension {} of the input '{}' has no fixed size", i, in.name),
                     fmt::format("give one, such as: --shape {}={}", in.name, sizes));
            }
            if (!symbol.empty()) symbols[symbol] = shape[i];
        }
        std::string name = unique(in.name);
        values_[in.name] = name;
        if (carried) types_[in.name] = in.type;
        shapes_[name] = shape;
        graph_.inputs.push_back({name, shape, carried ? type_name(in.type) : "float32"});
        if (in.has_shape && !in.shape.empty() && in.shape[0] <= 0)
            graph_.inputs.back().batch = in.symbols.empty() || in.symbols[0].empty() ? "batch" : in.symbols[0];
    }
}

// A node before those that read what it makes; the order of the file where it is one.
void OnnxImporter::sort_nodes() {
    std::map<std::string, std::size_t> maker;
    std::set<std::string> given;
    for (const OnnxValue& in : onnx_.inputs) given.insert(in.name);
    for (const auto& [name, tensor] : onnx_.initializers) given.insert(name);
    for (std::size_t i = 0; i < onnx_.nodes.size(); ++i)
        for (const std::string& out : onnx_.nodes[i].outputs)
            if (!out.empty() && (given.contains(out) || !maker.emplace(out, i).second)) fail(onnx_.nodes[i], fmt::format("the value '{}' is made twice", out));
    std::vector<char> mark(onnx_.nodes.size(), 0);  // 1: open, 2: done
    std::vector<std::size_t> order;
    for (std::size_t root = 0; root < onnx_.nodes.size(); ++root) {
        std::vector<std::pair<std::size_t, std::size_t>> stack;
        if (mark[root] == 0) stack.emplace_back(root, 0), mark[root] = 1;
        while (!stack.empty()) {
            auto& [at, next] = stack.back();
            const OnnxNode& node = onnx_.nodes[at];
            if (next == node.inputs.size()) {
                mark[at] = 2, order.push_back(at), stack.pop_back();
                continue;
            }
            auto made = maker.find(node.inputs[next++]);
            if (made == maker.end() || mark[made->second] == 2) continue;
            if (mark[made->second] == 1) fail(onnx_.nodes[made->second], "it needs its own result: a cycle");
            mark[made->second] = 1;
            stack.emplace_back(made->second, 0);
        }
    }
    std::vector<OnnxNode> sorted;
    for (std::size_t i : order) sorted.push_back(std::move(onnx_.nodes[i]));
    onnx_.nodes = std::move(sorted);
}

void OnnxImporter::fold_constants() {
    for (const OnnxNode& node : onnx_.nodes)
        if (!node.outputs.empty() && (node.op == "Constant" || !node.inputs.empty())) folds(node);
}

// Evaluates a node of which everything is known; true when its outputs are constants then.
bool OnnxImporter::folds(const OnnxNode& node) {
    if (ours_ && node.op == "Identity") return false;
    if (!can_evaluate(node) || node.has_subgraph) return false;
    std::vector<const OnnxTensor*> in;
    for (const std::string& name : node.inputs) {
        auto found = constants_.find(name);
        if (found == constants_.end() && !name.empty()) return false;
        in.push_back(name.empty() ? nullptr : &found->second);
    }
    if (in.empty() && node.op != "Constant") return false;
    // Our own files write a number that float32 cannot hold as a double: it is rounded when it is used.
    if (ours_ && node.op == "Cast" && in.size() == 1 && in[0] && in[0]->kind == OnnxTensor::Kind::float64) {
        constants_[node.outputs[0]] = *in[0];
        return true;
    }
    if (how_.as_float32 && (node.op == "QuantizeLinear" || node.op == "DequantizeLinear") && in[0] && in[0]->kind == OnnxTensor::Kind::float32) {
        OnnxTensor unrounded = *in[0];
        constants_[node.outputs[0]] = std::move(unrounded);
        return true;
    }
    try {
        const ElementBudget budget(unfolded_);
        std::vector<OnnxTensor> made = evaluate(node, in, onnx_.opset);
        if (node.op == "DequantizeLinear") dequantized_[node.outputs[0]] = node;
        for (std::size_t i = 0; i < std::min(made.size(), node.outputs.size()); ++i) {
            unfolded_ -= elements_held(made[i]);
            if (unfolded_ < 0) fail(node, "the constants that the file computes have too many elements for a file of its size");
            if (!node.outputs[i].empty()) constants_[node.outputs[i]] = std::move(made[i]);
        }
        return true;
    } catch (const EvaluationProblem& e) {
        fail(node, e.what());
    }
}

void OnnxImporter::take_described() {
    // Our own files describe nodes that ONNX cannot say; the group that represents one must be exactly what the description expands to.
    if (!ours_) return;
    for (const auto& [key, description] : onnx_.metadata)
        if (key.starts_with("loopegg.node.")) described_[key.substr(13)] = description;
    if (described_.empty()) return;
    std::vector<OnnxNode> kept;
    for (OnnxNode& node : onnx_.nodes) {
        std::string owner = node.name;
        while (!described_.contains(owner)) {
            auto slash = owner.rfind('/');
            if (slash == std::string::npos) break;
            owner.resize(slash);
        }
        if (!described_.contains(owner))
            kept.push_back(std::move(node));
        else if (node.name == owner)
            groups_[owner].push_back(node), kept.push_back({"Described", owner, {}, {owner}});
        else
            groups_[owner].push_back(std::move(node));
    }
    onnx_.nodes = std::move(kept);
}

void OnnxImporter::convert(const OnnxNode& node) {
    if (node.outputs.empty()) fail(node, "it has no output");
    const bool ours_kept = ours_ && node.op == "Identity";
    if (constants_.contains(node.outputs[0]) && !ours_kept) return;
    if (!node.domain.empty() && node.domain != "ai.onnx") fail(node, fmt::format("operators of the domain '{}' are not supported", node.domain));
    // nobody asks
    if (!ours_ && std::none_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& out) { return !out.empty() && read_.contains(out); })) return;
    if (node.op == "Shape" || node.op == "Size") {  // of a value whose numbers need not be known
        const OnnxTensor like{OnnxTensor::Kind::float32, shape(value(input(node, 0)))};
        const OnnxTensor* in[] = {&like};
        try {
            constants_[node.outputs[0]] = evaluate(node, in, onnx_.opset)[0];
        } catch (const EvaluationProblem& e) {
            fail(node, e.what());
        }
        return;
    }
    if (folds(node)) return;
    if (node.has_subgraph) fail(node, "operators with graphs inside them (loops, branches) are not supported");
    auto row = handlers().find(node.op);
    if (row != handlers().end() && (this->*row->second)(node)) return;
    const ElementFunction* f = row == handlers().end() ? find_onnx_function(node.op) : nullptr;
    if (f && (f->operands == 1 ? function(node, *f) : binary(node, *f))) return;
    if (!loops(node)) opaque(node);
}

void OnnxImporter::add_outputs() {
    for (const OnnxValue& output : onnx_.outputs) {
        std::string made = value(output.name);
        // The file's name for it, unless the node has it already; two outputs of one value need two names.
        const bool taken = std::count(graph_.outputs.begin(), graph_.outputs.end(), made) > 0;
        const bool is_input = std::any_of(graph_.inputs.begin(), graph_.inputs.end(), [&](const GraphInput& in) { return in.name == made; });
        if (made != output.name || taken || is_input) made = put(Node{unique(output.name), "identity", {made}});
        graph_.outputs.push_back(made);
    }
}

std::string OnnxImporter::unique(std::string name) {
    if (name.empty()) name = "value";
    std::string tried = name;
    for (int i = 1; !names_.insert(tried).second; ++i) tried = fmt::format("{}_{}", name, i);
    return tried;
}

// The node's name in our graph: its own in our files; otherwise the module that its weight belongs to, as PyTorch names it.
std::string OnnxImporter::name_for(const OnnxNode& node, const std::vector<std::string>& parameters) {
    if (ours_) return unique(node.name);
    for (const std::string& p : parameters)
        for (std::string_view suffix : {".weight", ".bias"}) {
            if (!p.ends_with(suffix) || p.size() == suffix.size()) continue;
            const std::string module = p.substr(0, p.size() - suffix.size());
            const bool output = std::any_of(onnx_.outputs.begin(), onnx_.outputs.end(), [&](const OnnxValue& v) { return v.name == module; });
            if (!output || node.outputs.at(0) == module) return unique(module);  // an output that another node makes keeps its name
        }
    std::string name = node.name.empty() ? node.outputs.at(0) : node.name;
    while (!name.empty() && name[0] == '/') name.erase(0, 1);
    return unique(name);
}

// Our name of a value that nodes compute; a constant becomes a parameter node.
std::string OnnxImporter::value(const std::string& name) {
    if (auto found = values_.find(name); found != values_.end()) return found->second;
    if (auto found = quantizers_.find(name); found != quantizers_.end()) return values_[name] = whole_numbers(found->second.node);
    auto constant = constants_.find(name);
    if (constant == constants_.end()) fail(fmt::format("the value '{}' is used, but nothing makes it", name));
    if (int type = element_type(constant->second); type != onnx_type::float32 && !is_narrow(type)) types_[name] = type;
    return parameter(name, unique(name), constant->second);
}

std::string OnnxImporter::parameter(const std::string& value_name, const std::string& name, const OnnxTensor& tensor) {
    set_weight(name, tensor, tensor.dims);
    return values_[value_name] = put(Node{name, "parameter", {}, {{"shape", tensor.dims}}});
}

const OnnxTensor* OnnxImporter::constant(const OnnxNode& node, std::size_t i) const {
    auto found = i < node.inputs.size() ? constants_.find(node.inputs[i]) : constants_.end();
    return found == constants_.end() ? nullptr : &found->second;
}

const OnnxTensor& OnnxImporter::needed(const OnnxNode& node, std::size_t i, const char* what) const {
    const OnnxTensor* t = constant(node, i);
    if (!t || t->kind == OnnxTensor::Kind::other) fail(node, fmt::format("its {} must be a constant tensor of numbers", what));
    return *t;
}

bool OnnxImporter::used(const OnnxNode& node, std::size_t output) const {
    return output < node.outputs.size() && !node.outputs[output].empty() && read_.contains(node.outputs[output]);
}

int OnnxImporter::type_of(const std::string& name) const {
    if (auto found = types_.find(name); found != types_.end()) return found->second;
    if (auto found = constants_.find(name); found != constants_.end() && !values_.contains(name)) {
        const int type = element_type(found->second);
        if (ours_ && type == onnx_type::float64) return onnx_type::float32;  // a number with all its digits, rounded when it is used
        return is_narrow(type) && how_.as_float32 ? onnx_type::float32 : type;
    }
    return onnx_type::float32;
}

bool OnnxImporter::computes_floats(const OnnxNode& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) { return name.empty() || type_of(name) == onnx_type::float32; });
}

const std::string& OnnxImporter::input(const OnnxNode& node, std::size_t i) const {
    if (!has(node, i)) fail(node, fmt::format("its input {} is missing", i));
    return node.inputs[i];
}

std::vector<std::string> OnnxImporter::tail(const OnnxNode& node) {
    return node.inputs.empty() ? node.inputs : std::vector<std::string>(node.inputs.begin() + 1, node.inputs.end());
}

void OnnxImporter::set_weight(const std::string& name, const OnnxTensor& tensor, Shape shape) {
    if (tensor.kind == OnnxTensor::Kind::other) fail(fmt::format("the tensor '{}' does not hold numbers", name));
    if (is_narrow(element_type(tensor)) && !how_.as_float32)
        fail(fmt::format("the tensor '{}' is {}: the model computes in it", name, type_name(element_type(tensor))), "--as-float32 computes in float32 instead");
    weight_elements_ += elements_held(tensor);
    if (weight_elements_ > weights_at_least + weights_for_each * held_)
        fail(fmt::format("its weights up to '{}' have too many elements for a file of its size", name));
    weights_[name] = {std::move(shape), floats_of(tensor)};
}

std::string OnnxImporter::put(Node node) {
    Graph alone;
    std::vector<std::string> given = node.inputs;
    std::sort(given.begin(), given.end());
    given.erase(std::unique(given.begin(), given.end()), given.end());
    for (const std::string& name : given) alone.inputs.push_back({name, shapes_.at(name)});
    if (alone.inputs.empty()) alone.inputs.push_back({node.name + " ", {1}});
    alone.nodes = {std::move(node)};
    alone.outputs = {alone.nodes[0].name};
    try {
        complete(alone);
    } catch (const UserError& e) {
        fail(e.diagnostics()[0].message);
    }
    graph_.nodes.push_back(std::move(alone.nodes[0]));
    const Node& made = graph_.nodes.back();
    shapes_[made.name] = made.shape;
    return made.name;
}

std::string OnnxImporter::put(const std::string& near, const char* what, const std::string& op, std::vector<std::string> inputs, Attrs attrs) {
    return put(Node{unique(near + "." + what), op, std::move(inputs), std::move(attrs)});
}

std::string OnnxImporter::put(const OnnxNode& from, const std::string& op, std::vector<std::string> inputs, Attrs attrs) {
    return result(from, put(Node{name_for(from), op, std::move(inputs), std::move(attrs)}));
}

std::string OnnxImporter::result(const OnnxNode& from, std::string name) { return values_[from.outputs[0]] = std::move(name); }

const std::map<std::string, OnnxImporter::Handler>& OnnxImporter::handlers() {
    using I = OnnxImporter;
    // Element functions and operators with loops that name their ONNX operator need no row here.
    static const std::map<std::string, Handler> all{
        {"Conv", &I::conv},
        {"Gemm", &I::gemm},
        {"MatMul", &I::matmul},
        {"Einsum", &I::einsum},
        {"Linear", &I::linear},
        {"MaxPool", &I::pool},
        {"AveragePool", &I::pool},
        {"GlobalAveragePool", &I::global_pool},
        {"GlobalMaxPool", &I::global_pool},
        {"BatchNormalization", &I::batch_norm},
        {"LayerNormalization", &I::layer_norm},
        {"InstanceNormalization", &I::group_norm},
        {"GroupNormalization", &I::group_norm},
        {"Softmax", &I::softmax},
        {"LSTM", &I::recurrent},
        {"GRU", &I::recurrent},
        {"RNN", &I::recurrent},
        {"ReduceMean", &I::reduce},
        {"ReduceSum", &I::reduce},
        {"ReduceMax", &I::reduce},
        {"ReduceMin", &I::reduce},
        {"ReduceL2", &I::reduce},
        {"ReduceSumSquare", &I::reduce},
        {"Gelu", &I::gelu},
        {"Clip", &I::clip},
        {"HardSigmoid", &I::hard_sigmoid},
        {"Sum", &I::several},
        {"Max", &I::several},
        {"Min", &I::several},
        {"Pow", &I::power},
        {"Identity", &I::identity},
        {"Dropout", &I::identity},
        {"Cast", &I::cast},
        {"CastLike", &I::cast},
        {"QuantizeLinear", &I::quantize},
        {"DequantizeLinear", &I::dequantize},
        {"Described", &I::described},
        {"Concat", &I::concat},
        {"Flatten", &I::flatten},
        {"Reshape", &I::reshape},
        {"Squeeze", &I::squeeze},
        {"Unsqueeze", &I::squeeze},
        {"Transpose", &I::transpose},
        {"Slice", &I::slice},
        {"Split", &I::split},
        {"Gather", &I::gather},
        {"Pad", &I::pad},
        {"Expand", &I::expand},
        {"Resize", &I::resize},
        {"Upsample", &I::resize},
        {"DepthToSpace", &I::depth_to_space},
        {"SpaceToDepth", &I::depth_to_space},
    };
    return all;
}

Model import_onnx(const std::string& file, std::string_view bytes, const OnnxReading& how, bool confined) {
    return OnnxImporter(file, parse_onnx(file, bytes, {}, confined), how).run();
}

Model read_onnx(const std::filesystem::path& path, const OnnxReading& how) {
    std::filesystem::path folder = path.parent_path();
    return OnnxImporter(path.string(), parse_onnx(path.string(), read_file(path, std::uintmax_t{1} << 31), folder.empty() ? "." : folder), how).run();
}

}  // namespace loopegg
