#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "graph/floats.hpp"
#include "graph/functions.hpp"
#include "graph/int8_scales_name.hpp"
#include "graph/loop_operators.hpp"
#include "graph/onnx/element_types.hpp"
#include "graph/onnx/export.hpp"
#include "graph/onnx/export_domain.hpp"
#include "graph/onnx/onnx_model.hpp"
#include "graph/onnx/rounding_before.hpp"
#include "graph/opaque.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;

// The opset of the file that the network came from, or the first later one in which the operators have the forms that are written here.
std::int64_t opset_for(const Graph& graph) {
    std::int64_t opset = graph.opset == 0 ? 17 : std::max<std::int64_t>(graph.opset, 13);
    for (const Node& node : graph.nodes) {
        if (node.op == "onnx") opset = std::max(opset, opaque_of(node).opset);
        if (node.op == "hard_swish") opset = std::max<std::int64_t>(opset, 14);
        if (node.op == "layer_norm") opset = std::max<std::int64_t>(opset, 17);
    }
    return opset;
}

// The version of the file format that came with an opset (onnx/docs/Versioning.md).
std::int64_t ir_version_for(std::int64_t opset) {
    struct Row {
        std::int64_t opset, ir;
    };
    for (const Row& row : {Row{28, 14}, Row{25, 13}, Row{24, 12}, Row{23, 11}, Row{21, 10}, Row{19, 9}, Row{15, 8}})
        if (opset >= row.opset) return row.ir;
    return 7;
}

// Writes one node after another. The value of a node has the node's name; helpers are named "NODE/what".
class Exporter {
public:
    Exporter(const Graph& graph, const Weights* weights, const std::map<std::string, std::string>& rounded)
        : graph_(graph), weights_(weights), rounded_(rounded) {}

    OnnxModel run() {
        out_.name = graph_.name;
        out_.producer = "loopegg";
        out_.opset = opset_for(graph_), out_.ir_version = ir_version_for(out_.opset);
        if (graph_.opset != 0) out_.metadata["loopegg.opset"] = std::to_string(graph_.opset);
        for (const GraphInput& input : graph_.inputs) {
            out_.inputs.push_back({input.name, input.shape});
            out_.inputs.back().type = types_[input.name] = input.dtype == "int64" ? 7 : input.dtype == "int32" ? 6 : input.dtype == "bool" ? 9 : 1;
        }
        for (const Node& node : graph_.nodes) note_type(node);
        for (const std::string& name : graph_.outputs) {
            out_.outputs.push_back({name, graph_.shape_of(name)});
            out_.outputs.back().type = types_.contains(name) ? types_.at(name) : 1;
        }
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            if (const std::size_t parts = parts_of_whole(i); parts > 1)
                add_split(i, parts), i += parts - 1;
            else if (!node.domain.whole())
                add_restricted(node);
            else if (node.op == "onnx")
                add_opaque(node);
            else if (node.op == "identity")
                emit("Identity", node.name, node.inputs);
            else
                add(with_floats(node));
        }
        return std::move(out_);
    }

private:
    std::string emit(const std::string& op, const std::string& name, std::vector<std::string> inputs, std::map<std::string, OnnxAttr> attrs = {}) {
        out_.nodes.push_back({op, name, std::move(inputs), {name}, std::move(attrs)});
        return name;
    }
    std::string constant(const std::string& name, OnnxTensor tensor) {
        out_.initializers.emplace_back(name, std::move(tensor));
        return name;
    }
    std::string scalar(const std::string& name, float value) { return constant(name, {OnnxTensor::Kind::float32, {}, {value}}); }
    std::string weight(const std::string& name) { return constant(name, values_of(name)); }
    OnnxTensor values_of(const std::string& name) const {
        if (!weights_) return {};
        const Tensor& t = weights_->at(name);
        return {OnnxTensor::Kind::float32, t.shape, t.values};
    }
    static Ints both_ends(Ints padding) {
        const std::size_t count = padding.size();
        for (std::size_t d = 0; d < count; ++d) padding.push_back(padding[d]);
        return padding;
    }
    std::string list(const std::string& name, const Ints& values) {
        return constant(name, {OnnxTensor::Kind::int64, {static_cast<std::int64_t>(values.size())}, {}, {}, values});
    }

    // Whole numbers and truth values travel between opaque nodes in their own types; a view keeps what it views.
    void note_type(const Node& node) {
        if (node.op == "onnx")
            types_[node.name] = opaque_type(node);
        else if (node.op == "quantize" && type_of_rounding(node) != 0)
            types_[node.name] = type_of_rounding(node);
        else if ((node.op == "identity" || node.op == "parameter") && !node.inputs.empty() && types_.contains(node.inputs[0]))
            types_[node.name] = types_.at(node.inputs[0]);
    }
    // A value in the type that its reader takes.
    std::string as_type(const std::string& value, int type, const std::string& at) {
        auto found = types_.find(value);
        if ((found == types_.end() ? 1 : found->second) == type) return value;
        return emit("Cast", at, {value}, {{"to", std::int64_t{type}}});
    }

    void add_opaque(const Node& node) {
        const OpaqueNode& opaque = opaque_of(node);
        OnnxNode made = opaque.node;
        made.name = node.name;
        for (std::size_t i = 0; i < opaque.inputs.size(); ++i) {
            const OpaqueNode::Input& in = opaque.inputs[i];
            const std::string at = fmt::format("{}/input{}", node.name, i);
            made.inputs.push_back(in.absent     ? ""
                                  : in.from < 0 ? constant(at, in.constant)
                                                : as_type(node.inputs[static_cast<std::size_t>(in.from)], in.type, at));
        }
        for (std::size_t i = 0; i < made.outputs.size(); ++i)
            made.outputs[i] = static_cast<std::int64_t>(i) == node.integer("output") ? node.name : fmt::format("{}/output{}", node.name, i);
        out_.nodes.push_back(std::move(made));
    }

    // How many slices from this node on cut one value along one axis, one after the other, into all of its parts; 0 where they do not.
    std::size_t parts_of_whole(std::size_t first) const {
        const Node& node = graph_.nodes[first];
        if (node.op != "slice") return 0;
        const Shape& whole = node.input_shapes[0];
        std::size_t axis = 0, parts = 0;
        while (axis < whole.size() && node.shape[axis] == whole[axis]) ++axis;
        if (axis == whole.size()) return 0;
        std::int64_t start = 0;
        for (std::size_t i = first; i < graph_.nodes.size() && start < whole[axis]; ++i, ++parts) {
            const Node& part = graph_.nodes[i];
            if (part.op != "slice" || part.inputs != node.inputs) return 0;
            const std::int64_t end = start + part.shape[axis];
            Ints starts(whole.size(), 0), ends(whole.size(), to_the_end);
            starts[axis] = start, ends[axis] = end == whole[axis] ? to_the_end : end;
            if (part.integers("starts") != starts || part.integers("ends") != ends || part.integers("steps") != Ints(whole.size(), 1)) return 0;
            start = end;
        }
        return start == whole[axis] ? parts : 0;
    }
    void add_split(std::size_t first, std::size_t parts) {
        const Node node = with_floats(graph_.nodes[first]);
        std::size_t axis = 0;
        while (node.shape[axis] == node.input_shapes[0][axis]) ++axis;
        Ints sizes;
        std::vector<std::string> names;
        for (std::size_t i = first; i < first + parts; ++i) sizes.push_back(graph_.nodes[i].shape[axis]), names.push_back(graph_.nodes[i].name);
        out_.nodes.push_back({"Split", node.name, {node.inputs[0], list(node.name + "/split", sizes)}, names, {{"axis", static_cast<std::int64_t>(axis)}}});
    }

    // Reads of whole numbers and truth values by our own operators: they are float32 there.
    Node with_floats(Node node) {
        for (std::size_t i = 0; i < node.inputs.size(); ++i) node.inputs[i] = as_type(node.inputs[i], 1, fmt::format("{}/float{}", node.name, i));
        return node;
    }

    void add_restricted(const Node& node) {
        for (const Parameter& p : parameters_of(node)) weight(p.name);
        DomainExpansion made = expand_domain(node);
        for (auto& [name, tensor] : made.constants) constant(name, std::move(tensor));
        for (OnnxNode& n : made.nodes) out_.nodes.push_back(std::move(n));
        out_.metadata["loopegg.node." + node.name] = made.description;
    }

    void add(const Node& node) {
        const std::string& name = node.name;
        const std::vector<std::string>& in = node.inputs;
        if (node.op == "conv2d") return add_conv(node);
        if (node.op == "linear") return add_linear(node);
        if (node.op == "batch_norm") {
            emit("BatchNormalization", name,
                 {in[0], weight(name + ".weight"), weight(name + ".bias"), weight(name + ".running_mean"), weight(name + ".running_var")},
                 {{"epsilon", static_cast<float>(node.real("eps"))}});
        } else if (node.op == "layer_norm") {
            emit("LayerNormalization", name, {in[0], weight(name + ".weight"), weight(name + ".bias")},
                 {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(node.real("eps"))}});
        } else if (node.op == "relu6") {
            emit("Clip", name, {in[0], scalar(name + "/min", 0), scalar(name + "/max", 6)});
        } else if (node.op == "silu") {
            emit("Mul", name, {in[0], emit("Sigmoid", name + "/sigmoid", {in[0]})});
        } else if ((node.op == "gelu" || node.op == "gelu_tanh") && out_.opset >= 20) {
            emit("Gelu", name, in, {{"approximate", std::string(node.op == "gelu" ? "none" : "tanh")}});
        } else if (node.op == "gelu") {
            std::string y = emit("Erf", name + "/erf", {emit("Div", name + "/div", {in[0], scalar(name + "/sqrt2", static_cast<float>(std::sqrt(2.0)))})});
            y = emit("Add", name + "/add", {y, scalar(name + "/one", 1)});
            emit("Mul", name, {emit("Mul", name + "/mul", {in[0], y}), scalar(name + "/half", 0.5f)});
        } else if (node.op == "softmax") {
            emit("Softmax", name, in, {{"axis", node.integer("axis")}});
        } else if (node.op == "scale") {
            add_scale(node);
        } else if (node.op == "concat") {
            emit("Concat", name, in, {{"axis", node.integer("axis")}});
        } else if (node.op == "max_pool" || node.op == "avg_pool") {
            Ints pads = node.integers("padding");
            pads.insert(pads.end(), node.integers("padding_end").begin(), node.integers("padding_end").end());
            std::map<std::string, OnnxAttr> attrs{{"kernel_shape", node.integers("kernel")}, {"strides", node.integers("stride")}, {"pads", pads}};
            if (node.op == "avg_pool") attrs["count_include_pad"] = std::int64_t{node.flag("count_padding")};
            emit(node.op == "max_pool" ? "MaxPool" : "AveragePool", name, in, std::move(attrs));
        } else if (node.op == "flatten") {
            add_flatten(node);
        } else if (node.op == "reshape") {
            const Ints& shape = node.integers("shape");
            emit("Reshape", name, {in[0], constant(name + "/shape", {OnnxTensor::Kind::int64, {static_cast<std::int64_t>(shape.size())}, {}, {}, shape})});
        } else if (node.op == "transpose") {
            emit("Transpose", name, in, {{"perm", node.integers("order")}});
        } else if (node.op == "parameter") {
            // An Identity of its own keeps the node's place among the others.
            emit("Identity", name, {constant(name + "/value", values_of(name))});
        } else {
            add_other(node);
        }
    }

    void add_other(const Node& node) {
        const std::string& name = node.name;
        const std::vector<std::string>& in = node.inputs;
        const ElementFunction* f = find_function(node.op);
        if (node.op == "slice") {
            Ints axes(node.shape.size());
            std::iota(axes.begin(), axes.end(), 0);
            emit("Slice", name,
                 {in[0], list(name + "/starts", node.integers("starts")), list(name + "/ends", node.integers("ends")), list(name + "/axes", axes),
                  list(name + "/steps", node.integers("steps"))});
        } else if (node.op == "pad") {
            Ints pads = node.integers("before");
            pads.insert(pads.end(), node.integers("after").begin(), node.integers("after").end());
            emit("Pad", name, {in[0], list(name + "/pads", pads), scalar(name + "/value", static_cast<float>(node.real("value")))});
        } else if (node.op == "expand") {
            Ints shape = node.integers("shape");
            for (std::int64_t& d : shape) d = std::max<std::int64_t>(d, 1);
            emit("Expand", name, {in[0], list(name + "/shape", shape)});
        } else if (node.op.starts_with("reduce_")) {
            const std::map<std::string, OnnxAttr> keep{{"keepdims", std::int64_t{node.flag("keepdims")}}};
            std::map<std::string, OnnxAttr> all = keep;
            all["axes"] = node.integers("axes");
            const bool by_input = node.op == "reduce_sum" || out_.opset >= 18;  // where the operator takes its axes from
            if (by_input)
                emit(node.op == "reduce_sum"    ? "ReduceSum"
                     : node.op == "reduce_mean" ? "ReduceMean"
                                                : "ReduceMax",
                     name, {in[0], list(name + "/axes", node.integers("axes"))}, keep);
            else
                emit(node.op == "reduce_mean" ? "ReduceMean" : "ReduceMax", name, in, all);
        } else if (node.op == "clip") {
            emit("Clip", name,
                 {in[0], scalar(name + "/min", static_cast<float>(node.real("low"))), scalar(name + "/max", static_cast<float>(node.real("high")))});
        } else if (node.op == "hard_sigmoid") {
            emit("HardSigmoid", name, in, {{"alpha", static_cast<float>(1.0 / 6)}, {"beta", 0.5f}});
        } else if (node.op == "quantize" || node.op == "fake_quantize") {
            add_rounding(node);
        } else if (node.op == "maximum" || node.op == "minimum") {
            emit(node.op == "maximum" ? "Max" : "Min", name, in);
        } else if (node.op == "gelu_tanh") {
            std::string x3 = emit("Mul", name + "/cube", {emit("Mul", name + "/square", {in[0], in[0]}), in[0]});
            std::string y = emit("Add", name + "/inner", {in[0], emit("Mul", name + "/small", {x3, scalar(name + "/k", 0.044715f)})});
            y = emit("Tanh", name + "/tanh", {emit("Mul", name + "/scaled", {y, scalar(name + "/root", 0.7978845608028654f)})});
            y = emit("Add", name + "/add", {y, scalar(name + "/one", 1)});
            emit("Mul", name, {emit("Mul", name + "/mul", {in[0], y}), scalar(name + "/half", 0.5f)});
        } else if (f && !f->onnx.empty()) {
            std::map<std::string, OnnxAttr> attrs;
            for (const FunctionParameter& p : f->parameters) attrs[std::string(p.name)] = static_cast<float>(node.real(p.name));
            emit(std::string(f->onnx), name, in, std::move(attrs));
        } else if (const LoopOperator* row = find_loop_operator(node.op)) {
            add_loops(node, *row);
        } else {
            static const std::map<std::string, std::string> same{{"matmul", "MatMul"}, {"global_avg_pool", "GlobalAveragePool"}};
            auto op = same.find(node.op);
            require(op != same.end(), "the ONNX exporter lacks an operator of the table");
            std::vector<std::string> operands = in;
            for (std::size_t i = 0; i < in.size() && is_bf16(node); ++i) operands[i] = through_bf16(in[i], fmt::format("{}/operand{}", name, i));
            emit(op->second, name, operands);
        }
    }

    void add_loops(const Node& node, const LoopOperator& row) {
        if (row.onnx.empty())
            throw UserError(Diagnostic{fmt::format("node '{}': no ONNX operator says '{}'", node.name, node.op), node.where, "network.py has it"});
        std::map<std::string, OnnxAttr> attrs;
        for (const LoopAttribute& a : row.attributes) {
            if (a.spec.kind == AttrKind::integer)
                attrs[std::string(a.onnx)] = node.integer(a.spec.name);
            else
                attrs[std::string(a.onnx)] = a.onnx == "pads" ? both_ends(node.integers(a.spec.name)) : node.integers(a.spec.name);
        }
        for (const FixedOnnxAttribute& f : row.fixed)
            if (f.value != f.absent) attrs[std::string(f.name)] = f.value;
        emit(std::string(row.onnx), node.name, node.inputs, std::move(attrs));
    }

    // Rounding to numbers of a few bits, in the type that has exactly their range, or step by step where there is none.
    void add_rounding(const Node& node) {
        const std::string& name = node.name;
        const double low = node.real("low"), high = node.real("high"), zero = node.real("zero");
        const bool back = node.op == "fake_quantize";
        const std::string scale = scalar(name + "/scale", static_cast<float>(node.real("scale")));
        if (const int type = type_of_rounding(node); type != 0) {
            OnnxTensor whole{OnnxTensor::Kind::int64, {}, {}, {}, {static_cast<std::int64_t>(zero)}};
            whole.type = type;
            const std::string centre = constant(name + "/zero", std::move(whole));
            const std::string y = emit("QuantizeLinear", back ? name + "/quantized" : name, {node.inputs[0], scale, centre});
            if (back) emit("DequantizeLinear", name, {y, scale, centre});
            return;
        }
        const std::string placed = scalar(name + "/zero", static_cast<float>(zero));
        std::string y = emit("Round", name + "/rounded", {emit("Div", name + "/scaled", {node.inputs[0], scale})});
        y = emit("Add", name + "/placed", {y, placed});
        y = emit("Clip", back ? name + "/held" : name, {y, scalar(name + "/low", static_cast<float>(low)), scalar(name + "/high", static_cast<float>(high))});
        if (back) emit("Mul", name, {emit("Sub", name + "/centred", {y, placed}), scale});
    }
    int type_of_rounding(const Node& node) const {
        const double low = node.real("low"), high = node.real("high"), zero = node.real("zero");
        if (zero != std::nearbyint(zero) || zero < low || zero > high) return 0;
        for (const int type : {onnx_type::int8, onnx_type::uint8, onnx_type::int16, onnx_type::uint16}) {
            const bool known = type == onnx_type::int8 || type == onnx_type::uint8 || out_.opset >= 21;
            if (const auto range = onnx_type::whole_range(type); known && range->low == low && range->high == high) return type;
        }
        return 0;
    }

    // The scales of a site whose operands are written as int8: the input's scale and zero, and one scale for each output. Null where they are not.
    const std::vector<float>* int8_scales(const Node& site) const {
        if (!weights_) return nullptr;
        const auto found = weights_->find(int8_scales_name(site.name));
        const auto outputs = static_cast<std::size_t>(site.op == "conv2d" ? site.shape[1] : site.shape.back());
        if (found == weights_->end() || found->second.values.size() != outputs + 2) return nullptr;
        const auto rounded = rounded_.find(site.name);
        const bool chosen = rounded != rounded_.end() && rounded->second == "int8";
        return chosen || rounding_before(graph_, site.inputs[0]) ? &found->second.values : nullptr;
    }
    bool is_bf16(const Node& site) const {
        const auto found = rounded_.find(site.name);
        return found != rounded_.end() && found->second == "bf16";
    }

    std::string through_bf16(const std::string& x, const std::string& at) {
        return emit("Cast", at, {emit("Cast", at + "/bf16", {x}, {{"to", std::int64_t{onnx_type::bfloat16}}})}, {{"to", std::int64_t{onnx_type::float32}}});
    }
    std::string site_input(const Node& node) {
        const std::string &x = node.inputs[0], at = node.name + "/input";
        if (is_bf16(node)) return through_bf16(x, at);
        const std::vector<float>* scales = int8_scales(node);
        if (!scales || rounding_before(graph_, x)) return x;
        OnnxTensor zero{OnnxTensor::Kind::int64, {}, {}, {}, {static_cast<std::int64_t>((*scales)[1])}};
        zero.type = onnx_type::uint8;
        const std::string step = scalar(at + "/scale", (*scales)[0]), centre = constant(at + "/zero", std::move(zero));
        return emit("DequantizeLinear", at, {emit("QuantizeLinear", at + "/quantized", {x, step, centre}), step, centre});
    }

    // The weight [outputs, ...], or [inputs, outputs] where `transposed` says so.
    std::string site_weight(const Node& node, bool transposed) {
        const std::string name = node.name + ".weight", turned = node.name + "/weight";
        const std::vector<float>* scales = int8_scales(node);
        if (!scales && !is_bf16(node)) return transposed ? emit("Transpose", turned, {weight(name)}, {{"perm", Ints{1, 0}}}) : weight(name);
        OnnxTensor w = values_of(name);
        const std::int64_t outputs = w.dims.empty() ? 1 : w.dims[0], each = static_cast<std::int64_t>(w.floats.size()) / outputs;
        if (scales) {
            for (std::size_t i = 0; i < w.floats.size(); ++i)
                w.integers.push_back(
                    static_cast<std::int64_t>(std::clamp(std::nearbyint(w.floats[i] / (*scales)[2 + i / static_cast<std::size_t>(each)]), -127.0f, 127.0f)));
            w.kind = OnnxTensor::Kind::int64, w.type = onnx_type::int8, w.floats.clear();
        } else {
            for (float& v : w.floats) v = from_bfloat16(to_bfloat16(v));
            w.type = onnx_type::bfloat16;
        }
        if (transposed) w = transposed_matrix(w);
        const std::string held = constant(name, std::move(w));
        if (!scales) return emit("Cast", turned, {held}, {{"to", std::int64_t{onnx_type::float32}}});
        const std::string steps = constant(name + "/scale", {OnnxTensor::Kind::float32, {outputs}, {scales->begin() + 2, scales->end()}});
        return emit("DequantizeLinear", turned, {held, steps}, {{"axis", std::int64_t{transposed ? 1 : 0}}});
    }
    static OnnxTensor transposed_matrix(const OnnxTensor& w) {
        OnnxTensor made = w;
        std::swap(made.dims[0], made.dims[1]);
        for (std::int64_t i = 0; i < w.dims[0]; ++i)
            for (std::int64_t j = 0; j < w.dims[1]; ++j) {
                const auto from = static_cast<std::size_t>(i * w.dims[1] + j), to = static_cast<std::size_t>(j * w.dims[0] + i);
                if (!w.integers.empty()) made.integers[to] = w.integers[from];
                if (!w.floats.empty()) made.floats[to] = w.floats[from];
            }
        return made;
    }

    void add_conv(const Node& node) {
        std::vector<std::string> in{site_input(node), site_weight(node, false)};
        if (node.flag("bias")) in.push_back(weight(node.name + ".bias"));
        emit("Conv", node.name, std::move(in),
             {{"kernel_shape", node.integers("kernel")},
              {"strides", node.integers("stride")},
              {"pads", both_ends(node.integers("padding"))},
              {"dilations", node.integers("dilation")},
              {"group", node.integer("groups")}});
    }

    void add_linear(const Node& node) {
        const std::string& name = node.name;
        const bool matrix = node.shape.size() == 2;  // Gemm is for matrices alone
        const std::string x = site_input(node), w = site_weight(node, !matrix), bias = node.flag("bias") ? weight(name + ".bias") : "";
        if (matrix) {
            std::vector<std::string> in{x, w};
            if (!bias.empty()) in.push_back(bias);
            emit("Gemm", name, std::move(in), {{"transB", std::int64_t{1}}});
            return;
        }
        if (bias.empty())
            emit("MatMul", name, {x, w});
        else
            emit("Add", name, {emit("MatMul", name + "/matmul", {x, w}), bias});
    }

    void add_scale(const Node& node) {
        double value = node.real("value");
        std::string factor = node.name + "/value";
        if (shortest_double(static_cast<float>(value)) == value) scalar(factor, static_cast<float>(value));
        // keeps every digit
        else
            factor = emit("Cast", node.name + "/cast", {constant(factor, {OnnxTensor::Kind::float64, {}, {}, {value}})}, {{"to", std::int64_t{1}}});
        emit("Mul", node.name, {node.inputs[0], factor});
    }

    void add_flatten(const Node& node) {
        std::int64_t axis = node.integer("axis");
        if (axis == 1) {
            emit("Flatten", node.name, node.inputs, {{"axis", axis}});
            return;
        }
        Ints shape(node.shape.size() - 1, 0);  // ONNX's Flatten always makes a matrix; ours keeps the leading dimensions
        shape.push_back(-1);
        emit("Reshape", node.name,
             {node.inputs[0], constant(node.name + "/shape", {OnnxTensor::Kind::int64, {static_cast<std::int64_t>(shape.size())}, {}, {}, shape})});
    }

    const Graph& graph_;
    const Weights* weights_;  // null: the nodes alone are asked for
    const std::map<std::string, std::string>& rounded_;
    std::map<std::string, int> types_;  // of values that are not float32, by ONNX's numbers
    OnnxModel out_;
};

}  // namespace

OnnxModel onnx_model(const Graph& graph, const Weights* weights, const std::map<std::string, std::string>& rounded) {
    return Exporter(graph, weights, rounded).run();
}

}  // namespace loopegg
