// Networks whose values are rounded to numbers of a few bits (QuantizeLinear) and back (DequantizeLinear). Both in a row are one function of float32 values.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "graph/int8_scales_name.hpp"
#include "graph/onnx/element_types.hpp"
#include "graph/onnx/importer.hpp"
#include "graph/onnx/rounding_before.hpp"
#include "graph/place.hpp"

namespace loopegg {
namespace {

double value_at(const OnnxTensor& t, std::size_t i) { return t.integers.empty() ? static_cast<double>(t.floats.at(i)) : static_cast<double>(t.integers.at(i)); }

}  // namespace

// How values are rounded: one scale and zero for all, or one for each place along an axis.
struct OnnxImporter::Rounding {
    std::vector<double> scale, zero;
    std::int64_t axis;
    onnx_type::WholeRange range;
};

OnnxImporter::Rounding OnnxImporter::rounding_of(const OnnxNode& node, const Shape& x) const {
    const OnnxTensor &scale = needed(node, 1, "scale"), *zero = has(node, 2) ? &needed(node, 2, "zero point") : nullptr;
    const int type = zero ? element_type(*zero) : static_cast<int>(attr_int(node, "output_dtype", onnx_type::uint8));
    const auto range = onnx_type::whole_range(type);
    if (!range) fail(node, "it rounds to numbers of a type that is not supported", "int8, uint8, int16 and uint16 are");
    const std::size_t count = floats_of(scale).size();
    if (attr_int(node, "block_size", 0) != 0 || scale.dims.size() > 1) fail(node, "scales for blocks of elements are not supported");
    if (count == 0 || (zero && zero->integers.size() != count)) fail(node, fmt::format("it has {} scales and another number of zero points", count));
    Rounding made{{}, {}, attr_int(node, "axis", 1), *range};
    if (made.axis < 0) made.axis += static_cast<std::int64_t>(x.size());
    if (count > 1 && (made.axis < 0 || at(made.axis) >= x.size() || x[at(made.axis)] != static_cast<std::int64_t>(count)))
        fail(node, fmt::format("it has {} scales, which do not fit to an axis of {}", count, to_string(x)));
    for (const float s : floats_of(scale)) {
        if (!std::isnormal(s) || s < 0) fail(node, fmt::format("its scale is {}, a number above 0 is expected", s));
        made.scale.push_back(s);
    }
    for (std::size_t i = 0; i < count; ++i) made.zero.push_back(zero ? value_at(*zero, i) : 0.0);
    return made;
}

// The numbers of each place along an axis, as an operand that stretches.
std::string OnnxImporter::put_along(const std::string& near, const char* what, const std::vector<double>& values, std::size_t trailing) {
    Shape dims(trailing + 1, 1);
    dims[0] = static_cast<std::int64_t>(values.size());
    const std::string name = unique(fmt::format("{}.{}", near, what));
    set_weight(name, {OnnxTensor::Kind::float32, dims, {values.begin(), values.end()}});
    return put(Node{name, "parameter", {}, {{"shape", dims}}});
}

// Values rounded to whole numbers, and back where `back` says so.
std::string OnnxImporter::put_rounded(const std::string& name, const std::string& x, const Rounding& r, bool back) {
    if (r.scale.size() == 1)
        return put(
            Node{name, back ? "fake_quantize" : "quantize", {x}, {{"scale", r.scale[0]}, {"zero", r.zero[0]}, {"low", r.range.low}, {"high", r.range.high}}});
    const std::size_t trailing = at(rank(x) - 1 - r.axis);
    const std::string scale = put_along(name, "scale", r.scale, trailing), zero = put_along(name, "zero", r.zero, trailing);
    std::string y = put(name, "rounded", "round", {put(name, "scaled", "div", {x, scale})});
    y = put(name, "placed", "add", {y, zero});
    const Node held{back ? unique(name + ".held") : name, "clip", {y}, {{"low", r.range.low}, {"high", r.range.high}}};
    y = put(held);
    return back ? put(Node{name, "mul", {put(name, "centred", "sub", {y, zero}), scale}}) : y;
}

// Whether a value is one that the same rounding made, moved at most: rounding it again changes nothing.
bool OnnxImporter::is_rounded(const std::string& x, const Rounding& r) const {
    const Node* node = rounding_before(graph_, x);
    return node && r.scale.size() == 1 && node->real("scale") == r.scale[0] && node->real("zero") == r.zero[0] && node->real("low") == r.range.low &&
           node->real("high") == r.range.high;
}

// What others read of it decides what it becomes: values again, or whole numbers.
bool OnnxImporter::quantize(const OnnxNode& node) {
    if (how_.as_float32) return without_rounding(node);
    if (type_of(input(node, 0)) != onnx_type::float32) fail(node, "it rounds values that are not float32");
    rounding_of(node, shape(value(node.inputs[0])));
    quantizers_[node.outputs[0]] = {node, ""};
    types_[node.outputs[0]] = has(node, 2) ? element_type(*constant(node, 2)) : static_cast<int>(attr_int(node, "output_dtype", onnx_type::uint8));
    return true;
}

std::string OnnxImporter::whole_numbers(const OnnxNode& quantizer) {
    const std::string x = value(quantizer.inputs[0]);
    return put_rounded(name_for(quantizer), x, rounding_of(quantizer, shape(x)), false);
}

bool OnnxImporter::dequantize(const OnnxNode& node) {
    if (how_.as_float32) return without_rounding(node);
    const auto before = quantizers_.find(input(node, 0));
    const auto same_constant = [&](const OnnxNode& other, std::size_t i) {
        return has(node, i) == has(other, i) && (!has(node, i) || (constant(node, i) && constant(other, i) && *constant(node, i) == *constant(other, i)));
    };
    if (before != quantizers_.end() && same_constant(before->second.node, 1) && same_constant(before->second.node, 2) &&
        attr_int(node, "axis", 1) == attr_int(before->second.node, "axis", 1)) {
        auto& [quantizer, back] = before->second;
        const std::string x = value(quantizer.inputs[0]);
        const Rounding r = rounding_of(quantizer, shape(x));
        if (back.empty()) back = !ours_ && is_rounded(x, r) ? x : put_rounded(name_for(node), x, r, true);
        result(node, back);
        return true;
    }
    const std::string x = value(node.inputs[0]), name = name_for(node);
    OnnxNode typed = node;
    if (!has(node, 2)) typed.attrs["output_dtype"] = std::int64_t{type_of(node.inputs[0])};
    const Rounding r = rounding_of(typed, shape(x));
    const std::size_t trailing = r.scale.size() == 1 ? 0 : at(rank(x) - 1 - r.axis);
    const std::string centred = put(name, "centred", "sub", {x, put_along(name, "zero", r.zero, trailing)});
    result(node, put(Node{name, "mul", {centred, put_along(name, "scale", r.scale, trailing)}}));
    return true;
}

// The values as they were before they were rounded.
bool OnnxImporter::without_rounding(const OnnxNode& node) {
    values_[node.outputs[0]] = value(input(node, 0));
    types_.erase(node.outputs[0]);
    return true;
}

// What the file rounds to 8 bits an int8 unit multiplies with the file's own scales: the input's, and those of each output's weights, whose zeros are 0.
void OnnxImporter::note_int8(const std::string& site, const OnnxNode& node, std::int64_t out_axis) {
    const auto weights = dequantized_.find(node.inputs.at(1));
    const Node* rounded = values_.contains(node.inputs[0]) ? rounding_before(graph_, values_.at(node.inputs[0])) : nullptr;
    if (weights == dequantized_.end() || !rounded || rounded->real("high") - rounded->real("low") != 255) return;
    const OnnxNode& from = weights->second;
    const OnnxTensor &whole = constants_.at(from.inputs[0]), &scales = constants_.at(from.inputs[1]), *zeros = constant(from, 2);
    const std::vector<float> all = floats_of(scales);
    const std::int64_t outputs = whole.dims.at(at(out_axis)), given = attr_int(from, "axis", 1);
    if (all.size() > 1 && (given < 0 ? given + static_cast<std::int64_t>(whole.dims.size()) : given) != out_axis) return;
    std::int64_t inner = 1;
    for (std::size_t d = at(out_axis) + 1; d < whole.dims.size(); ++d) inner *= whole.dims[d];
    for (std::size_t i = 0; i < whole.integers.size(); ++i) {
        const std::size_t channel = all.size() == 1 ? 0 : i / at(inner) % at(outputs);
        if (std::abs(static_cast<double>(whole.integers[i]) - (zeros ? value_at(*zeros, channel) : 0.0)) > 127) return;
    }
    Tensor made{{outputs + 2}, {static_cast<float>(rounded->real("scale")), static_cast<float>(rounded->real("zero") - rounded->real("low"))}};
    for (std::int64_t c = 0; c < outputs; ++c) made.values.push_back(all[all.size() == 1 ? 0 : at(c)]);
    weights_[int8_scales_name(site)] = std::move(made);
}

}  // namespace loopegg
