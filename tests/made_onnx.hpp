// ONNX models in tests: made operator by operator, or written by PyTorch's exporters.
#pragma once
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "graph/interpreter.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/onnx/onnx_model.hpp"
#include "graph/operators.hpp"
#include "graph/weights.hpp"

namespace loopegg::test {

using Ints = std::vector<std::int64_t>;
using Kind = OnnxTensor::Kind;

inline OnnxTensor floats(Ints dims, std::vector<float> values) { return {Kind::float32, std::move(dims), std::move(values)}; }
inline OnnxTensor whole(Ints values) { return {Kind::int64, {static_cast<std::int64_t>(values.size())}, {}, {}, values}; }
inline OnnxTensor counted(Ints dims) {  // 0.25, 0.5, -0.75, ...: no two alike, some negative
    OnnxTensor t{Kind::float32, dims};
    const std::int64_t n = element_count(dims);
    for (std::int64_t i = 0; i < n; ++i) t.floats.push_back(0.25f * static_cast<float>(i + 1) * (i % 3 == 2 ? -1.0f : 1.0f));
    return t;
}

// {NAME: bytes} of the ONNX files that tests/data/onnx/make.py keeps in one file.
inline std::map<std::string, std::string> exported_onnx(const std::filesystem::path& file = LOOPEGG_SOURCE "/tests/data/onnx/exported.safetensors") {
    const std::string bytes = read_file(file);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    const nlohmann::json tensors = nlohmann::json::parse(bytes.substr(8, header));
    std::map<std::string, std::string> all;
    for (const auto& [name, tensor] : tensors.items()) {
        if (!name.ends_with(".onnx")) continue;
        const std::uint64_t begin = tensor.at("data_offsets").at(0), end = tensor.at("data_offsets").at(1);
        all[name.substr(0, name.size() - 5)] = bytes.substr(8 + header + begin, end - begin);
    }
    return all;
}

struct Made {
    OnnxModel model;
    Made(Ints shape, std::int64_t opset = 18) {
        model.producer = "somebody", model.opset = opset;
        model.inputs.push_back({"x", shape});
    }
    Made& constant(const std::string& name, OnnxTensor t) {
        model.initializers.emplace_back(name, std::move(t));
        return *this;
    }
    Made& node(std::string op, std::vector<std::string> in, std::vector<std::string> out, std::map<std::string, OnnxAttr> attrs = {}) {
        model.nodes.push_back({std::move(op), "n" + std::to_string(model.nodes.size()), std::move(in), std::move(out), std::move(attrs)});
        return *this;
    }
    Made& output(const std::string& name) {
        OnnxValue v{name, {}};
        v.has_shape = false;
        model.outputs.push_back(v);
        return *this;
    }
    Model read(const OnnxReading& how = {}) const { return import_onnx("m.onnx", serialize_onnx(model), how); }
    Tensor run(const std::string& output = "y", const OnnxReading& how = {}) const {
        const Model m = read(how);
        const Tensor x{m.graph.inputs[0].shape, counted(m.graph.inputs[0].shape).floats};
        return interpret(m.graph, m.weights, {{m.graph.inputs[0].name, x}}).at(output);
    }
};

}  // namespace loopegg::test
