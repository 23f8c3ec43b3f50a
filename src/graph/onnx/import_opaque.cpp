#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/onnx/element_types.hpp"
#include "graph/onnx/importer.hpp"
#include "graph/opaque.hpp"

namespace loopegg {
namespace {

constexpr std::size_t max_embedded = 65536, max_small = 64;  // elements of constants inside a node's text

}  // namespace

void OnnxImporter::opaque(const OnnxNode& node) {
    const bool quantized = node.op.starts_with("QLinear") || node.op.ends_with("Integer") || node.op == "DynamicQuantizeLinear";
    if (!can_evaluate(node))
        fail(node, "the operator is not supported", quantized ? "quantized models are read in the QDQ format (QuantizeLinear and DequantizeLinear)" : "");
    OpaqueNode made;
    made.node = node, made.opset = onnx_.opset;
    std::vector<std::string> inputs;
    std::vector<bool> known;
    std::size_t embedded = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        OpaqueNode::Input& in = made.inputs.emplace_back();
        const OnnxTensor* t = constant(node, i);
        known.push_back(!has(node, i) || t);
        if (!has(node, i)) {
            in.absent = true;
            continue;
        }
        const std::size_t size = t ? t->floats.size() + t->doubles.size() + t->integers.size() : 0;
        if (t && t->kind == OnnxTensor::Kind::other) fail(node, fmt::format("its input {} does not hold numbers", i));
        if (t && !values_.contains(node.inputs[i]) && (size <= max_small || type_of(node.inputs[i]) != onnx_type::float32)) {
            in.constant = *t;
            embedded += size;
            continue;
        }
        in.type = type_of(node.inputs[i]);
        in.from = static_cast<int>(inputs.size());
        inputs.push_back(value(node.inputs[i]));
    }
    if (embedded > max_embedded) fail(node, fmt::format("its constants have {} elements, more than {}", embedded, max_embedded));
    if (std::string open = shape_from_data(node, known); !open.empty())
        fail(node, fmt::format("the shape of its result depends on {}, which is known only when it runs", open));
    if (inputs.size() > 64) fail(node, "it has more than 64 inputs");
    if (inputs.empty()) fail(node, "it reads nothing");
    const std::string text = write_opaque(made), name = name_for(node);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (!used(node, i) && !(i == 0 && node.outputs.size() == 1)) continue;
        const std::string value =
            put(Node{i == 0 ? name : unique(fmt::format("{}.{}", name, i)), "onnx", inputs, {{"node", text}, {"output", static_cast<std::int64_t>(i)}}});
        values_[node.outputs[i]] = value;
        if (const int type = opaque_type(graph_.nodes.back()); type != onnx_type::float32) {
            types_[node.outputs[i]] = type;
            if (type == 11) fail(node, "its result is float64");
        }
    }
}

}  // namespace loopegg
