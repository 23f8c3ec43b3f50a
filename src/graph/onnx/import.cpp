#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "graph/onnx/constants.hpp"
#include "graph/onnx/export_domain.hpp"
#include "graph/onnx/fuse.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/operators.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;
using Attrs = std::map<std::string, Attr>;

class Importer {
public:
    Importer(const std::string& file, OnnxModel onnx) : file_(file), onnx_(std::move(onnx)), ours_(onnx_.producer == "loopegg") {}

    Model run() {
        graph_.name = onnx_.name.empty() ? "imported" : onnx_.name;
        if (onnx_.opset < 7) fail(fmt::format("opset {} is too old, 7 or later is needed", onnx_.opset));
        for (auto& [name, tensor] : onnx_.initializers) constants_[name] = std::move(tensor);
        add_inputs();
        // Constants first: the patterns look at them.
        for (const OnnxNode& node : onnx_.nodes)
            if (!(ours_ && node.op == "Identity"))
                if (auto folded = fold(node, constants_)) constants_[node.outputs[0]] = std::move(*folded);
        take_described();
        fuse_patterns(onnx_, constants_);
        for (const OnnxNode& node : onnx_.nodes) convert(node);
        for (const OnnxValue& output : onnx_.outputs) graph_.outputs.push_back(value(output.name));
        try {
            complete(graph_);
        } catch (const UserError& e) { fail(e.diagnostics()[0].message); }
        check_weights(graph_, weights_, file_);
        return {std::move(graph_), std::move(weights_)};
    }

private:
    [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
        throw UserError(Diagnostic{fmt::format("cannot import '{}': {}", file_, message), {}, hint});
    }
    [[noreturn]] void fail(const OnnxNode& node, const std::string& message) const {
        fail(fmt::format("{} '{}': {}", node.op, node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name, message));
    }

    void add_inputs() {
        for (const OnnxValue& in : onnx_.inputs) {
            if (constants_.contains(in.name)) continue;   // old files list their weights here too
            if (!in.has_shape) fail(fmt::format("the input '{}' has no shape", in.name));
            if (!in.is_float) fail(fmt::format("the input '{}' is not float32", in.name));
            Shape shape = in.shape;
            for (std::size_t i = 0; i < shape.size(); ++i) {
                if (i == 0 && shape[i] <= 0) shape[i] = 1;
                if (shape[i] <= 0) fail(fmt::format("dimension {} of the input '{}' has no fixed size", i, in.name));
            }
            std::string name = unique(in.name);
            values_[in.name] = name;
            shapes_[name] = shape;
            graph_.inputs.push_back({name, shape});
        }
    }

    // Our own files describe nodes that ONNX cannot say; the group that stands for one must be exactly what the description expands to.
    void take_described() {
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
            if (!described_.contains(owner)) kept.push_back(std::move(node));
            else if (node.name == owner) groups_[owner].push_back(node), kept.push_back({"Described", owner, {}, {owner}});
            else groups_[owner].push_back(std::move(node));
        }
        onnx_.nodes = std::move(kept);
    }

    std::string unique(std::string name) {
        if (name.empty()) name = "value";
        std::string tried = name;
        for (int i = 1; !names_.insert(tried).second; ++i) tried = fmt::format("{}_{}", name, i);
        return tried;
    }
    // The node's name in our graph: its own in our files; otherwise the module that its weight belongs to, as PyTorch names it.
    std::string name_for(const OnnxNode& node, const std::vector<std::string>& parameters = {}) {
        if (ours_) return unique(node.name);
        for (const std::string& p : parameters)
            for (std::string_view suffix : {".weight", ".bias"})
                if (p.ends_with(suffix) && p.size() > suffix.size()) return unique(p.substr(0, p.size() - suffix.size()));
        std::string name = node.name.empty() ? node.outputs.at(0) : node.name;
        while (!name.empty() && name[0] == '/') name.erase(0, 1);
        return unique(name);
    }

    // Our name of a value that nodes compute; a constant becomes a parameter node.
    std::string value(const std::string& name) {
        if (auto found = values_.find(name); found != values_.end()) return found->second;
        auto constant = constants_.find(name);
        if (constant == constants_.end()) fail(fmt::format("the value '{}' is used before anything makes it", name));
        return parameter(name, unique(name), constant->second);
    }
    std::string parameter(const std::string& value_name, const std::string& name, const OnnxTensor& tensor) {
        Shape shape = tensor.dims.empty() ? Shape{1} : tensor.dims;
        set_weight(name, tensor, shape);
        return values_[value_name] = put(Node{name, "parameter", {}, {{"shape", shape}}});
    }
    const OnnxTensor* constant(const OnnxNode& node, std::size_t i) const {
        auto found = i < node.inputs.size() ? constants_.find(node.inputs[i]) : constants_.end();
        return found == constants_.end() ? nullptr : &found->second;
    }
    const OnnxTensor& needed(const OnnxNode& node, std::size_t i, const char* what) const {
        const OnnxTensor* t = constant(node, i);
        if (!t || t->kind == OnnxTensor::Kind::other) fail(node, fmt::format("its {} must be a constant tensor of numbers", what));
        return *t;
    }
    bool has(const OnnxNode& node, std::size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }
    void set_weight(const std::string& name, const OnnxTensor& tensor, Shape shape) {
        if (tensor.kind == OnnxTensor::Kind::other) fail(fmt::format("the tensor '{}' does not hold numbers", name));
        weights_[name] = {std::move(shape), floats_of(tensor)};
    }
    void set_weight(const std::string& name, const OnnxTensor& tensor) { set_weight(name, tensor, tensor.dims); }

    // Adds a node, with its shape, and answers its name.
    std::string put(Node node) {
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
        } catch (const UserError& e) { fail(e.diagnostics()[0].message); }
        graph_.nodes.push_back(std::move(alone.nodes[0]));
        const Node& made = graph_.nodes.back();
        shapes_[made.name] = made.shape;
        return made.name;
    }
    std::string put(const OnnxNode& from, const std::string& op, std::vector<std::string> inputs, Attrs attrs = {}) {
        return result(from, put(Node{name_for(from), op, std::move(inputs), std::move(attrs)}));
    }
    std::string result(const OnnxNode& from, std::string name) { return values_[from.outputs[0]] = std::move(name); }

    // Symmetric padding as two numbers.
    Ints padding(const OnnxNode& node) const {
        std::string automatic = attr_text(node, "auto_pad", "NOTSET");
        if (automatic != "NOTSET" && automatic != "VALID") fail(node, fmt::format("auto_pad '{}' is not supported", automatic));
        Ints pads = attr_ints(node, "pads").value_or(Ints{0, 0, 0, 0});
        if (pads.size() != 4) fail(node, "only two-dimensional windows are supported");
        if (pads[0] != pads[2] || pads[1] != pads[3]) fail(node, "padding that differs between the two sides is not supported");
        return {pads[0], pads[1]};
    }

    void convert(const OnnxNode& node) {
        if (node.outputs.empty()) fail(node, "it has no output");
        bool known_value = constants_.contains(node.outputs[0]);
        if (known_value && !(ours_ && node.op == "Identity")) return;
        if (!node.domain.empty() && node.domain != "ai.onnx") fail(node, fmt::format("operators of the domain '{}' are not supported", node.domain));
        if (node.op == "Shape") {
            const Shape& shape = shapes_.at(value(input(node, 0)));
            constants_[node.outputs[0]] = {OnnxTensor::Kind::int64, {static_cast<std::int64_t>(shape.size())}, {}, {}, shape};
            return;
        }
        if (auto folded = ours_ && node.op == "Identity" ? std::nullopt : fold(node, constants_)) {
            constants_[node.outputs[0]] = std::move(*folded);
            return;
        }
        static const std::map<std::string, void (Importer::*)(const OnnxNode&)> table{
            {"Conv", &Importer::conv}, {"Gemm", &Importer::gemm}, {"MatMul", &Importer::matmul}, {"Linear", &Importer::linear},
            {"BatchNormalization", &Importer::batch_norm}, {"LayerNormalization", &Importer::layer_norm}, {"Clip", &Importer::clip},
            {"Softmax", &Importer::softmax}, {"Add", &Importer::binary}, {"Mul", &Importer::binary}, {"Div", &Importer::binary}, {"Sub", &Importer::binary}, {"Sum", &Importer::sum},
            {"Concat", &Importer::concat}, {"MaxPool", &Importer::pool}, {"AveragePool", &Importer::pool}, {"ReduceMean", &Importer::mean},
            {"Flatten", &Importer::flatten}, {"Reshape", &Importer::reshape}, {"Squeeze", &Importer::squeeze}, {"Unsqueeze", &Importer::squeeze},
            {"Transpose", &Importer::transpose}, {"Identity", &Importer::identity}, {"Dropout", &Importer::identity}, {"Cast", &Importer::identity}, {"Described", &Importer::described},
        };
        static const std::map<std::string, std::string> same{{"Relu", "relu"}, {"Silu", "silu"}, {"Gelu", "gelu"}, {"GlobalAveragePool", "global_avg_pool"}};
        if (auto plain = same.find(node.op); plain != same.end()) {
            if (node.op == "Gelu" && attr_text(node, "approximate", "none") != "none") fail(node, "only the exact gelu is supported");
            put(node, plain->second, {value(input(node, 0))});
        } else if (auto row = table.find(node.op); row != table.end()) {
            (this->*row->second)(node);
        } else {
            fail(node, fmt::format("the operator is not supported"));
        }
    }

    const std::string& input(const OnnxNode& node, std::size_t i) const {
        if (!has(node, i)) fail(node, fmt::format("its input {} is missing", i));
        return node.inputs[i];
    }
    // The name of input i as PyTorch gave it, for naming; Identity nodes may stand between.
    std::vector<std::string> tail(const OnnxNode& node) const { return node.inputs.empty() ? node.inputs : std::vector<std::string>(node.inputs.begin() + 1, node.inputs.end()); }

    void conv(const OnnxNode& node) {
        const OnnxTensor& w = needed(node, 1, "weight");
        if (w.dims.size() != 4) fail(node, "only two-dimensional convolutions are supported");
        std::string x = value(input(node, 0)), name = name_for(node, tail(node));
        set_weight(name + ".weight", w);
        if (has(node, 2)) set_weight(name + ".bias", needed(node, 2, "bias"));
        result(node, put(Node{name, "conv2d", {x}, {{"out_channels", w.dims[0]}, {"kernel", Ints{w.dims[2], w.dims[3]}}, {"stride", attr_ints(node, "strides").value_or(Ints{1, 1})},
                                                    {"padding", padding(node)}, {"dilation", attr_ints(node, "dilations").value_or(Ints{1, 1})}, {"groups", attr_int(node, "group", 1)}, {"bias", has(node, 2)}}}));
    }

    // x times a constant matrix [in, out], or [out, in] when it is given that way round.
    void put_linear(const OnnxNode& node, const OnnxTensor& w, bool out_first, const OnnxTensor* bias) {
        if (w.dims.size() != 2) fail(node, "its weight must be a matrix");
        std::string x = value(input(node, 0)), name = name_for(node, tail(node));
        std::int64_t rows = w.dims[0], columns = w.dims[1];
        Tensor& weight = weights_[name + ".weight"] = {out_first ? Shape{rows, columns} : Shape{columns, rows}, floats_of(w)};
        if (!out_first) {
            std::vector<float> given = weight.values;
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < columns; ++j) weight.values[static_cast<std::size_t>(j * rows + i)] = given[static_cast<std::size_t>(i * columns + j)];
        }
        if (bias) set_weight(name + ".bias", *bias);
        result(node, put(Node{name, "linear", {x}, {{"out_features", weight.shape[0]}, {"bias", bias != nullptr}}}));
    }
    void gemm(const OnnxNode& node) {
        if (attr_float(node, "alpha", 1) != 1 || attr_float(node, "beta", 1) != 1 || attr_int(node, "transA", 0) != 0) fail(node, "only Gemm with alpha = beta = 1 and no transA is supported");
        put_linear(node, needed(node, 1, "weight"), attr_int(node, "transB", 0) != 0, has(node, 2) ? &needed(node, 2, "bias") : nullptr);
    }
    void linear(const OnnxNode& node) { put_linear(node, needed(node, 1, "weight"), false, &needed(node, 2, "bias")); }
    void matmul(const OnnxNode& node) {
        if (const OnnxTensor* w = constant(node, 1); w && w->dims.size() == 2) put_linear(node, needed(node, 1, "weight"), false, nullptr);
        else put(node, "matmul", {value(input(node, 0)), value(input(node, 1))});
    }

    void batch_norm(const OnnxNode& node) {
        if (attr_int(node, "training_mode", 0) != 0) fail(node, "the model was exported for training; export it for inference");
        std::string x = value(input(node, 0)), name = name_for(node, tail(node));
        const char* names[] = {".weight", ".bias", ".running_mean", ".running_var"};
        for (std::size_t i = 0; i < 4; ++i) set_weight(name + names[i], needed(node, i + 1, names[i] + 1));
        result(node, put(Node{name, "batch_norm", {x}, {{"eps", attr_float(node, "epsilon", 1e-5)}}}));
    }

    void layer_norm(const OnnxNode& node) {
        std::string x = value(input(node, 0)), name = name_for(node, tail(node));
        const OnnxTensor& scale = needed(node, 1, "scale");
        std::int64_t axis = attr_int(node, "axis", -1), rank = static_cast<std::int64_t>(shapes_.at(x).size());
        if (scale.dims.size() != 1 || (axis != -1 && axis != rank - 1)) fail(node, "only layer norm over the last dimension is supported");
        set_weight(name + ".weight", scale);
        if (has(node, 2)) set_weight(name + ".bias", needed(node, 2, "bias"));
        else weights_[name + ".bias"] = {scale.dims, std::vector<float>(scale.floats.size(), 0.0f)};
        result(node, put(Node{name, "layer_norm", {x}, {{"eps", attr_float(node, "epsilon", 1e-5)}}}));
    }

    void clip(const OnnxNode& node) {
        auto bound = [&](std::size_t i, const char* attr, double absent) {
            if (has(node, i)) return scalar_of(needed(node, i, "bound")).value_or(absent);
            return attr_float(node, attr, absent);
        };
        double low = bound(1, "min", -INFINITY), high = bound(2, "max", INFINITY);
        if (low != 0 || (high != 6 && !(high > 1e30))) fail(node, fmt::format("only clipping from 0 to 6 is supported, found {} to {}", low, high));
        put(node, high == 6 ? "relu6" : "relu", {value(input(node, 0))});
    }

    void softmax(const OnnxNode& node) {
        std::string x = value(input(node, 0));
        std::int64_t rank = static_cast<std::int64_t>(shapes_.at(x).size()), axis = attr_int(node, "axis", onnx_.opset < 13 ? 1 : -1);
        if (onnx_.opset < 13 && axis != -1 && axis != rank - 1) fail(node, "before opset 13 only softmax over the last dimension is supported");
        put(node, "softmax", {x}, {{"axis", axis}});
    }

    void binary(const OnnxNode& node) {
        const OnnxTensor *left = constant(node, 0), *right = constant(node, 1);
        // A value that our own file made a parameter node is no constant to scale by.
        std::optional<double> a = left && !values_.contains(node.inputs[0]) ? scalar_of(*left) : std::nullopt;
        std::optional<double> b = right && !values_.contains(node.inputs[1]) ? scalar_of(*right) : std::nullopt;
        if (node.op == "Mul" && (a || b)) {
            put(node, "scale", {value(input(node, a ? 1 : 0))}, {{"value", a ? *a : *b}});
        } else if (node.op == "Div") {
            if (!b || *b == 0) fail(node, "only division by a constant number is supported");
            put(node, "scale", {value(input(node, 0))}, {{"value", 1 / *b}});
        } else if (node.op == "Sub") {
            if (!right) fail(node, "only subtraction of a constant is supported");
            OnnxTensor negative = *right;
            negative.floats = floats_of(*right);
            for (float& v : negative.floats) v = -v;
            negative.doubles.clear(), negative.integers.clear();
            std::string x = value(input(node, 0)), name = name_for(node);
            std::string p = parameter(node.inputs[1] + " negated", unique(name + ".shift"), negative);
            result(node, put(Node{name, "add", {x, p}}));
        } else {
            std::string x = value(input(node, 0)), y = value(input(node, 1));
            put(node, node.op == "Add" ? "add" : "mul", {x, y});
        }
    }

    void sum(const OnnxNode& node) {
        std::string total = value(input(node, 0)), name = name_for(node);
        for (std::size_t i = 1; i < node.inputs.size(); ++i) total = put(Node{i + 1 == node.inputs.size() ? name : unique(fmt::format("{}.{}", name, i)), "add", {total, value(input(node, i))}});
        result(node, total);
    }

    void concat(const OnnxNode& node) {
        std::vector<std::string> all;
        for (std::size_t i = 0; i < node.inputs.size(); ++i) all.push_back(value(input(node, i)));
        put(node, "concat", all, {{"axis", attr_int(node, "axis", 1)}});
    }

    void pool(const OnnxNode& node) {
        if (attr_int(node, "ceil_mode", 0) != 0) fail(node, "ceil_mode is not supported");
        for (std::int64_t d : attr_ints(node, "dilations").value_or(Ints{}))
            if (d != 1) fail(node, "dilated pooling is not supported");
        Attrs attrs{{"kernel", attr_ints(node, "kernel_shape").value_or(Ints{})}, {"stride", attr_ints(node, "strides").value_or(Ints{1, 1})}, {"padding", padding(node)}};
        if (node.op == "AveragePool") attrs["count_padding"] = attr_int(node, "count_include_pad", 0) != 0 || (ours_ ? false : padding(node) == Ints{0, 0});
        put(node, node.op == "MaxPool" ? "max_pool" : "avg_pool", {value(input(node, 0))}, std::move(attrs));
    }

    void mean(const OnnxNode& node) {
        std::string x = value(input(node, 0));
        Ints axes = attr_ints(node, "axes").value_or(Ints{});
        if (has(node, 1)) axes = integers_of(needed(node, 1, "axes")).value_or(Ints{});
        for (std::int64_t& a : axes) a += a < 0 ? static_cast<std::int64_t>(shapes_.at(x).size()) : 0;
        std::sort(axes.begin(), axes.end());
        if (axes != Ints{2, 3} || shapes_.at(x).size() != 4) fail(node, "only the mean over height and width is supported");
        if (attr_int(node, "keepdims", 1) != 0) {
            put(node, "global_avg_pool", {x});
            return;
        }
        std::string name = name_for(node);
        std::string pooled = put(Node{unique(name + ".pool"), "global_avg_pool", {x}});
        result(node, put(Node{name, "flatten", {pooled}}));
    }

    void flatten(const OnnxNode& node) {
        std::string x = value(input(node, 0));
        std::int64_t axis = attr_int(node, "axis", 1), rank = static_cast<std::int64_t>(shapes_.at(x).size());
        if (axis < 0) axis += rank;
        if (axis < 0 || axis > rank) fail(node, "its axis is out of range");
        if (axis == 1 && rank > 1) put(node, "flatten", {x});
        else put(node, "reshape", {x}, {{"shape", axis == 0 ? Ints{1, -1} : Ints{element_count({shapes_.at(x).begin(), shapes_.at(x).begin() + axis}), -1}}});
    }

    void put_reshape(const OnnxNode& node, const std::string& x, Ints shape) {
        // A batch that stands as a number would forbid other batch sizes.
        if (!ours_ && !shape.empty() && !shapes_.at(x).empty()) {
            if (shape[0] == shapes_.at(x)[0]) shape[0] = 0;
            else if (!graph_.inputs.empty() && !graph_.inputs[0].shape.empty() && shape[0] == graph_.inputs[0].shape[0] && !std::count(shape.begin(), shape.end(), -1)) shape[0] = -1;
        }
        put(node, "reshape", {x}, {{"shape", std::move(shape)}});
    }
    void reshape(const OnnxNode& node) {
        std::string x = value(input(node, 0));
        auto shape = integers_of(needed(node, 1, "shape"));
        if (!shape) fail(node, "its shape must be whole numbers");
        if (attr_int(node, "allowzero", 0) != 0 && std::count(shape->begin(), shape->end(), 0)) fail(node, "an empty tensor is not supported");
        if (!ours_ && shapes_.at(x).size() > 1 && *shape == Ints{shapes_.at(x)[0], -1}) put(node, "flatten", {x});
        else put_reshape(node, x, *shape);
    }
    void squeeze(const OnnxNode& node) {
        std::string x = value(input(node, 0));
        Ints axes = attr_ints(node, "axes").value_or(Ints{}), shape = shapes_.at(x);
        if (has(node, 1)) axes = integers_of(needed(node, 1, "axes")).value_or(Ints{});
        bool wider = node.op == "Unsqueeze";
        std::int64_t rank = static_cast<std::int64_t>(shape.size() + (wider ? axes.size() : 0));
        for (std::int64_t& a : axes) {
            a += a < 0 ? rank : 0;
            if (a < 0 || a >= rank || rank > 8) fail(node, "an axis is out of range");
        }
        std::set<std::int64_t> places(axes.begin(), axes.end());
        Ints out;
        std::size_t next = 0;
        for (std::int64_t i = 0; i < rank; ++i) {
            if (wider && places.contains(i)) out.push_back(1);
            else if (wider) out.push_back(next < shape.size() ? shape[next++] : 1);
            else if (!(shape[static_cast<std::size_t>(i)] == 1 && (places.contains(i) || places.empty()))) out.push_back(shape[static_cast<std::size_t>(i)]);
        }
        put_reshape(node, x, out);
    }

    void transpose(const OnnxNode& node) {
        std::string x = value(input(node, 0));
        Ints order;
        for (std::size_t i = shapes_.at(x).size(); i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
        put(node, "transpose", {x}, {{"order", attr_ints(node, "perm").value_or(order)}});
    }

    void identity(const OnnxNode& node) {
        const OnnxTensor* t = constant(node, 0);
        if (ours_ && t && node.op == "Identity") parameter(node.outputs[0], unique(node.name), *t);
        else values_[node.outputs[0]] = value(input(node, 0));
    }

    void described(const OnnxNode& node) {
        Node made = described_node(unique(node.name), described_.at(node.name));
        for (std::string& in : made.inputs) in = value(in);
        put(made);
        const Node& done = graph_.nodes.back();
        for (const Parameter& p : parameters_of(done)) {
            auto found = constants_.find(p.name);
            if (found == constants_.end()) fail(node, fmt::format("its tensor '{}' is missing", p.name));
            set_weight(p.name, found->second);
        }
        if (element_count(done.shape) > (1 << 26)) fail(node, "its output is too large to be checked");
        if (expand_domain(done).nodes != groups_.at(node.name)) fail(fmt::format("the nodes that stand for '{}' are not what its description says", node.name));
        result(node, done.name);
    }

    std::string file_;
    OnnxModel onnx_;
    bool ours_;   // our own exporter wrote it: names and numbers are kept as they stand
    Graph graph_;
    Weights weights_;
    OnnxConstants constants_;
    std::map<std::string, std::string> values_;   // ONNX value to our node
    std::map<std::string, Shape> shapes_;         // of our nodes
    std::set<std::string> names_;
    std::map<std::string, std::string> described_;
    std::map<std::string, std::vector<OnnxNode>> groups_;
};

}  // namespace

Model import_onnx(const std::string& file, std::string_view bytes) { return Importer(file, parse_onnx(file, bytes)).run(); }
Model read_onnx(const std::filesystem::path& path) { return import_onnx(path.string(), read_file(path, std::uintmax_t{1} << 31)); }

}  // namespace loopegg
