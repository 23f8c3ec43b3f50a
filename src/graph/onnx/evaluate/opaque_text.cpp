#include "graph/onnx/evaluate/opaque_text.hpp"

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include <nlohmann/json.hpp>

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg {
namespace {

using nlohmann::json;
using onnx_eval::problem;

json tensor_json(const OnnxTensor& t) {
    json j{{"type", element_type(t)}, {"dims", t.dims}};
    if (t.kind == OnnxTensor::Kind::float32)
        j["values"] = t.floats;
    else if (t.kind == OnnxTensor::Kind::float64)
        j["values"] = t.doubles;
    else
        j["values"] = t.integers;
    for (json& v : j["values"])  // JSON has no infinity
        if (v.is_number_float() && !std::isfinite(v.get<double>())) v = std::isnan(v.get<double>()) ? "nan" : v.get<double>() > 0 ? "inf" : "-inf";
    return j;
}

template <class T>
std::vector<T> reals(const json& values) {
    std::vector<T> out;
    for (const json& v : values)
        out.push_back(!v.is_string() ? v.get<T>()
                      : v == "nan"   ? std::numeric_limits<T>::quiet_NaN()
                      : v == "inf"   ? std::numeric_limits<T>::infinity()
                                     : -std::numeric_limits<T>::infinity());
    return out;
}

OnnxTensor tensor_of(const json& j) {
    OnnxTensor t = onnx_eval::make(j.at("type").get<int>(), j.at("dims").get<std::vector<std::int64_t>>());
    if (j.at("values").size() != onnx_eval::size_of(t)) problem("a constant of an opaque node does not hold what its dimensions say");
    if (t.kind == OnnxTensor::Kind::float32)
        t.floats = reals<float>(j.at("values"));
    else if (t.kind == OnnxTensor::Kind::float64)
        t.doubles = reals<double>(j.at("values"));
    else
        t.integers = j.at("values").get<std::vector<std::int64_t>>();
    return t;
}

struct AttrJson {
    json operator()(std::int64_t v) const { return v; }
    json operator()(float v) const { return {{"float", tensor_json({OnnxTensor::Kind::float32, {1}, {v}})["values"][0]}}; }
    json operator()(const std::string& v) const { return v; }
    json operator()(const std::vector<std::int64_t>& v) const { return v; }
    json operator()(const std::vector<float>& v) const {
        return {{"floats", tensor_json({OnnxTensor::Kind::float32, {static_cast<std::int64_t>(v.size())}, v})["values"]}};
    }
    json operator()(const OnnxTensor& v) const { return {{"tensor", tensor_json(v)}}; }
    json operator()(const std::vector<std::string>& v) const { return {{"texts", v}}; }
};

OnnxAttr attr_of(const json& j) {
    if (j.is_number_integer()) return j.get<std::int64_t>();
    if (j.is_string()) return j.get<std::string>();
    if (j.is_array()) return j.get<std::vector<std::int64_t>>();
    if (j.contains("float")) return reals<float>(json::array({j.at("float")}))[0];
    if (j.contains("floats")) return reals<float>(j.at("floats"));
    if (j.contains("texts")) return j.at("texts").get<std::vector<std::string>>();
    return tensor_of(j.at("tensor"));
}

OnnxTensor typed(const FloatView& from, int type) {
    OnnxTensor t = onnx_eval::make(onnx_eval::float32, from.shape);
    std::memcpy(t.floats.data(), from.values, t.floats.size() * sizeof(float));
    return type == onnx_eval::float32 ? t : onnx_eval::cast(t, type);
}

}  // namespace

std::string write_opaque(const OpaqueNode& node) {
    json attrs = json::object(), inputs = json::array();
    for (const auto& [name, value] : node.node.attrs) attrs[name] = std::visit(AttrJson{}, value);
    for (const OpaqueNode::Input& i : node.inputs)
        inputs.push_back(i.absent ? json() : i.from >= 0 ? json{{"from", i.from}, {"type", i.type}} : tensor_json(i.constant));
    return json{{"op", node.node.op}, {"opset", node.opset}, {"attrs", attrs}, {"inputs", inputs}, {"outputs", node.node.outputs.size()}}.dump(
        -1, ' ', false, json::error_handler_t::replace);
}

OpaqueNode read_opaque(const std::string& text) {
    try {
        const json j = json::parse(text);
        OpaqueNode out;
        out.node.op = j.at("op").get<std::string>(), out.opset = j.at("opset").get<std::int64_t>();
        for (const auto& [name, value] : j.at("attrs").items()) out.node.attrs[name] = attr_of(value);
        const auto outputs = j.at("outputs").get<std::int64_t>();
        if (outputs < 1 || outputs > 1024) problem("an opaque node has from 1 to 1024 outputs");
        for (std::int64_t i = 0; i < outputs; ++i) out.node.outputs.push_back("y" + std::to_string(i));
        for (const json& i : j.at("inputs")) {
            OpaqueNode::Input& made = out.inputs.emplace_back();
            if (i.is_null())
                made.absent = true;
            else if (i.contains("from"))
                made.from = i.at("from").get<int>(), made.type = i.at("type").get<int>();
            else
                made.constant = tensor_of(i);
            if (made.from < -1 || made.from > 63 || onnx_eval::kind_of(made.type) == OnnxTensor::Kind::other)
                problem("an opaque node names an input that is not there");
        }
        if (!can_evaluate(out.node)) problem("the ONNX operator '" + out.node.op + "' is not known");
        return out;
    } catch (const json::exception& e) {
        problem(std::string("an opaque node cannot be read: ") + e.what());
    }
}

OpaqueResult run_opaque(const OpaqueNode& node, std::size_t output, const std::vector<FloatView>& inputs) {
    std::vector<OnnxTensor> given(inputs.size());
    std::vector<const OnnxTensor*> in;
    for (const OpaqueNode::Input& i : node.inputs) {
        const auto from = static_cast<std::size_t>(i.from);
        if (i.from >= 0 && from >= inputs.size()) problem("it takes an input that the node has not");
        if (i.from >= 0) given[from] = typed(inputs[from], i.type);
        in.push_back(i.absent ? nullptr : i.from < 0 ? &i.constant : &given[from]);
    }
    while (!in.empty() && !in.back()) in.pop_back();
    const std::vector<OnnxTensor> all = evaluate(node.node, in, node.opset);
    if (output >= all.size()) problem("it has no output " + std::to_string(output));
    const OnnxTensor& y = all[output];
    OpaqueResult result{y.dims, {}, element_type(y)};
    result.values.resize(onnx_eval::size_of(y));
    for (std::size_t i = 0; i < result.values.size(); ++i) {
        const double v = onnx_eval::number(y, i);
        result.values[i] = static_cast<float>(v);
        if (y.kind == OnnxTensor::Kind::int64 && static_cast<double>(result.values[i]) != v)
            problem("the whole number " + std::to_string(y.integers[i]) + " does not fit into float32");
    }
    return result;
}

}  // namespace loopegg

extern "C" int loopegg_run_opaque(const char* node, int output, int inputs, const float* const* values, const long* dims, float* out, long count) {
    using namespace loopegg;
    try {
        static std::mutex mutex;
        static std::map<const char*, std::shared_ptr<const OpaqueNode>> known;  // texts of a network stay where they are
        std::shared_ptr<const OpaqueNode> read;
        {
            std::lock_guard lock(mutex);
            auto& entry = known[node];
            if (!entry) entry = std::make_shared<const OpaqueNode>(read_opaque(node));
            read = entry;
        }
        std::vector<FloatView> given;
        for (int i = 0; i < inputs; ++i) {
            const long rank = *dims++;
            given.push_back({std::vector<std::int64_t>(dims, dims + rank), values[i]});
            dims += rank;
        }
        const OpaqueResult y = run_opaque(*read, static_cast<std::size_t>(output), given);
        if (static_cast<long>(y.values.size()) != count) return -1;
        std::memcpy(out, y.values.data(), y.values.size() * sizeof(float));
        return 0;
    } catch (const std::exception&) {
        return -1;
    }
}
