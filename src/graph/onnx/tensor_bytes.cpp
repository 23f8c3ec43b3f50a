#include "graph/onnx/tensor_bytes.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "graph/floats.hpp"
#include "graph/onnx/element_types.hpp"

namespace loopegg {
namespace {

template <class T, class Out>
void raw_values(std::string_view raw, std::vector<Out>& out, Out (*convert)(T)) {
    out.reserve(raw.size() / sizeof(T));
    for (std::size_t i = 0; i + sizeof(T) <= raw.size(); i += sizeof(T)) out.push_back(convert(load<T>(raw.data() + i)));
}

template <class T>
std::int64_t to_int(T v) {
    return static_cast<std::int64_t>(v);
}

}  // namespace

std::int64_t elements_of(const std::vector<std::int64_t>& dims) {
    std::int64_t count = 1;
    for (std::int64_t d : dims)
        if (d < 0 || __builtin_mul_overflow(count, d, &count) || count > (std::int64_t{1} << 40)) return -1;
    return count;
}

std::size_t element_width(int type) {
    switch (type) {
        case onnx_type::boolean:
        case onnx_type::int8:
        case onnx_type::uint8: return 1;
        case onnx_type::float16:
        case onnx_type::bfloat16:
        case onnx_type::int16:
        case onnx_type::uint16: return 2;
        case onnx_type::float32:
        case onnx_type::int32:
        case onnx_type::uint32: return 4;
        case onnx_type::float64:
        case onnx_type::int64:
        case onnx_type::uint64: return 8;
        default: return 0;
    }
}

void take_bytes(std::string_view raw, int type, OnnxTensor& out) {
    switch (type) {
        case onnx_type::float32:
            out.floats.resize(raw.size() / 4);
            if (!out.floats.empty()) std::memcpy(out.floats.data(), raw.data(), out.floats.size() * 4);
            break;
        case onnx_type::float16: raw_values<std::uint16_t>(raw, out.floats, from_half); break;
        case onnx_type::bfloat16: raw_values<std::uint16_t>(raw, out.floats, from_bfloat16); break;
        case onnx_type::float64: raw_values<double, double>(raw, out.doubles, [](double v) { return v; }); break;
        case onnx_type::int64:
        case onnx_type::uint64: raw_values<std::int64_t>(raw, out.integers, to_int); break;
        case onnx_type::int32: raw_values<std::int32_t>(raw, out.integers, to_int); break;
        case onnx_type::uint32: raw_values<std::uint32_t>(raw, out.integers, to_int); break;
        case onnx_type::int16: raw_values<std::int16_t>(raw, out.integers, to_int); break;
        case onnx_type::uint16: raw_values<std::uint16_t>(raw, out.integers, to_int); break;
        case onnx_type::int8: raw_values<std::int8_t>(raw, out.integers, to_int); break;
        case onnx_type::uint8: raw_values<std::uint8_t>(raw, out.integers, to_int); break;
        default: raw_values<std::uint8_t, std::int64_t>(raw, out.integers, [](std::uint8_t v) { return std::int64_t{v != 0}; });
    }
}

std::string take_from_elsewhere(const std::string& name, const std::string& folder, OnnxTensor& out) {
    namespace fs = std::filesystem;
    const std::string who = "tensor '" + name + "'";
    const std::int64_t count = elements_of(out.dims);
    if (count < 0) return who + " has a negative dimension or too many elements";
    const std::size_t wanted = static_cast<std::size_t>(count) * element_width(element_type(out));
    std::uint64_t offset = 0, length = wanted;
    const auto number = [&](const char* key, std::uint64_t& to) {
        const auto found = out.elsewhere.find(key);
        if (found == out.elsewhere.end()) return true;
        const std::string& v = found->second;
        return !v.empty() && std::from_chars(v.data(), v.data() + v.size(), to).ptr == v.data() + v.size();
    };
    if (!number("offset", offset)) return who + " begins at '" + out.elsewhere["offset"] + "' of another file, which is no number";
    if (!number("length", length)) return who + " has '" + out.elsewhere["length"] + "' bytes in another file, which is no number";
    if (folder.empty()) return who + " keeps its data in another file: read the model from its folder";
    const std::string location = out.elsewhere["location"];
    const fs::path path(location);
    if (location.empty() || path.is_absolute() || std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; }))
        return who + " keeps its data in '" + location + "', which is not in the model's folder";
    if (length != wanted) return who + " needs " + std::to_string(wanted) + " bytes by its dims, '" + location + "' is said to hold " + std::to_string(length);
    std::error_code problem;
    const fs::path file = fs::path(folder) / path, real = fs::canonical(file, problem), home = fs::canonical(folder, problem);
    if (problem || !fs::is_regular_file(real, problem)) return who + " keeps its data in '" + location + "', and there is no such file next to the model";
    const fs::path inside = real.lexically_relative(home);
    if (inside.empty() || *inside.begin() == "..") return who + " keeps its data in '" + location + "', which leads out of the model's folder";
    const std::uint64_t size = fs::file_size(real, problem);
    if (problem || offset > size || size - offset < wanted)
        return who + " needs " + std::to_string(wanted) + " bytes from byte " + std::to_string(offset) + " of '" + location + "', which has " +
               std::to_string(size);
    std::string bytes(wanted, '\0');
    std::ifstream stream(real, std::ios::binary);
    if (!stream.seekg(static_cast<std::streamoff>(offset)) || !stream.read(bytes.data(), static_cast<std::streamsize>(wanted)))
        return who + ": '" + location + "' cannot be read";
    take_bytes(bytes, element_type(out), out);
    out.elsewhere.clear();
    return "";
}

}  // namespace loopegg
