// An ONNX file as plain data, so that one small module alone needs protobuf.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace loopegg {

// What the file holds as numbers: floats of any width as float (and as double where they were double), whole numbers and truth values as int64.
struct OnnxTensor {
    enum class Kind { float32, float64, int64, other };
    Kind kind = Kind::float32;
    std::vector<std::int64_t> dims;
    std::vector<float> floats{};                     // float32
    std::vector<double> doubles{};                   // float64
    std::vector<std::int64_t> integers{};            // int64
    int type = 0;                                    // by ONNX's numbers; 0: what the kind says
    std::map<std::string, std::string> elsewhere{};  // "location", "offset", "length" of the values in another file, which are not read yet
    friend bool operator==(const OnnxTensor&, const OnnxTensor&) = default;
};

// The element type by ONNX's numbers: 1 is float32, 7 int64, 9 a truth value, 11 float64; 0 where the tensor holds no numbers.
inline int element_type(const OnnxTensor& t) {
    if (t.type != 0) return t.type;
    return t.kind == OnnxTensor::Kind::float32 ? 1 : t.kind == OnnxTensor::Kind::float64 ? 11 : t.kind == OnnxTensor::Kind::int64 ? 7 : 0;
}

using OnnxAttr = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>, OnnxTensor, std::vector<std::string>>;

struct OnnxNode {
    std::string op, name;
    std::vector<std::string> inputs, outputs;
    std::map<std::string, OnnxAttr> attrs{};
    std::string domain{};  // "" and "ai.onnx" are the standard operators
    bool has_subgraph = false;
    friend bool operator==(const OnnxNode&, const OnnxNode&) = default;
};

struct OnnxValue {
    std::string name;
    std::vector<std::int64_t> shape;  // -1: the dimension is no number
    bool has_shape = true;
    int type = 1;                        // of the elements, by ONNX's numbers; 0: the value is no tensor
    std::vector<std::string> symbols{};  // names of dimensions that are no numbers; "" for the other dimensions
};

struct OnnxModel {
    std::string name, producer;
    std::int64_t ir_version = 8, opset = 17;
    std::vector<OnnxValue> inputs, outputs;
    std::vector<OnnxNode> nodes;
    std::vector<std::pair<std::string, OnnxTensor>> initializers;
    std::map<std::string, std::string> metadata{};
    // For writing: initializers whose values are in a file next to the model, with the place where they begin.
    std::string data_file{};
    std::map<std::string, std::uint64_t> outside{};
};

// Both functions need protobuf. A process of its own, with little memory and no rights, parses the bytes of strangers. With `confined` false this process
// parses them, for fuzzers. Both throw UserError, with `file` in the message. Weights in other files are looked for in `folder`, and nowhere where it is
// empty.
OnnxModel parse_onnx(const std::string& file, std::string_view bytes, const std::filesystem::path& folder = {}, bool confined = true);
std::string serialize_onnx(const OnnxModel& model);

// What the protobuf module offers. Each function returns an error in words, because no exception crosses from one library to another.
struct OnnxCodec {
    std::string (*parse)(std::string_view bytes, OnnxModel& out);
    std::string (*serialize)(const OnnxModel& model, std::string& out);
};

// How a slice of ours says that it continues to the end of a dimension, whatever its size.
constexpr std::int64_t to_the_end = std::int64_t{1} << 31;

}  // namespace loopegg
