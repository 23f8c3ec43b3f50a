#include "graph/onnx/upgrade.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/places.hpp"
#include "base/process.hpp"
#include "codec_places.hpp"

namespace loopegg {
namespace {

constexpr std::size_t max_sent = 64;  // elements: scales, axes and bounds that the converter looks at; larger ones are weights

std::size_t elements(const OnnxTensor& t) { return t.floats.size() + t.doubles.size() + t.integers.size(); }

}  // namespace

std::string upgrade_opset(OnnxModel& model) {
    if (model.opset >= upgraded_opset || model.opset < 7) return "";
    for (const OnnxNode& node : model.nodes)
        if (node.has_subgraph || (!node.domain.empty() && node.domain != "ai.onnx")) return "";
    // Weights stay here: the converter sees them as inputs.
    OnnxModel sent = model;
    sent.initializers.clear(), sent.ir_version = 8, sent.name = "graph";
    for (OnnxNode& node : sent.nodes)
        if (node.op == "Pad") node.attrs.emplace("value", 0.0f);  // a default that the converter forgets
    std::map<std::string, OnnxTensor> kept;
    for (const auto& [name, tensor] : model.initializers) {
        const bool listed = std::any_of(sent.inputs.begin(), sent.inputs.end(), [&, &who = name](const OnnxValue& v) { return v.name == who; });
        if (tensor.kind == OnnxTensor::Kind::other) return "";
        if (elements(tensor) <= max_sent) {
            sent.initializers.emplace_back(name, tensor);
            continue;
        }
        kept[name] = tensor;
        if (listed) continue;
        OnnxValue& as_input = sent.inputs.emplace_back(OnnxValue{name, tensor.dims});
        as_input.type = element_type(tensor);
    }
    OnnxModel made;
    try {
        const std::string helper = module_library("loopegg_onnx_upgrade", LOOPEGG_ONNX_UPGRADE).string();
        const Filtered ran = run_filter({helper, std::to_string(upgraded_opset)}, serialize_onnx(sent), 20);
        if (ran.too_long) return "ONNX's converter took too long";
        if (ran.ended != 0) {
            std::string words = ran.errors.substr(0, std::min<std::size_t>(ran.errors.find('\n'), 200));
            return words.empty() ? fmt::format("ONNX's converter ended with {}", ran.ended) : words;
        }
        made = parse_onnx("what ONNX's converter made", ran.output);
    } catch (const UserError& e) {
        return e.diagnostics()[0].message;
    }
    if (made.opset != upgraded_opset) return "ONNX's converter gave another opset";
    made.inputs = model.inputs, made.outputs = model.outputs;
    made.name = model.name, made.producer = model.producer, made.metadata = model.metadata;
    for (auto& [name, tensor] : kept) made.initializers.emplace_back(name, std::move(tensor));
    model = std::move(made);
    return "";
}

}  // namespace loopegg
