// An ONNX file as plain data, so that one small module alone needs protobuf.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace loopegg {

// What the file holds as numbers: floats of any width as float (and as double where they were double), whole numbers as int64.
struct OnnxTensor {
    enum class Kind { float32, float64, int64, other };
    Kind kind = Kind::float32;
    std::vector<std::int64_t> dims;
    std::vector<float> floats{};            // float32
    std::vector<double> doubles{};          // float64
    std::vector<std::int64_t> integers{};   // int64
    friend bool operator==(const OnnxTensor&, const OnnxTensor&) = default;
};

using OnnxAttr = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>, OnnxTensor>;

struct OnnxNode {
    std::string op, name;
    std::vector<std::string> inputs, outputs;
    std::map<std::string, OnnxAttr> attrs{};
    std::string domain{};   // "" and "ai.onnx" are the standard operators
    friend bool operator==(const OnnxNode&, const OnnxNode&) = default;
};

struct OnnxValue {
    std::string name;
    std::vector<std::int64_t> shape;   // -1: not a number
    bool has_shape = true, is_float = true;
};

struct OnnxModel {
    std::string name, producer;
    std::int64_t ir_version = 8, opset = 17;
    std::vector<OnnxValue> inputs, outputs;
    std::vector<OnnxNode> nodes;
    std::vector<std::pair<std::string, OnnxTensor>> initializers;
    std::map<std::string, std::string> metadata{};
};

// Both are done by the protobuf module, which is opened on first use. Throw UserError; `file` is for the words.
OnnxModel parse_onnx(const std::string& file, std::string_view bytes);
std::string serialize_onnx(const OnnxModel& model);

// What the module offers. Errors are words, for no exception crosses from one library to another.
struct OnnxCodec {
    std::string (*parse)(std::string_view bytes, OnnxModel& out);
    std::string (*serialize)(const OnnxModel& model, std::string& out);
};

}  // namespace loopegg
