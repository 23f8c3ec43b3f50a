#include "graph/npy.hpp"

#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "graph/floats.hpp"

namespace loopegg {
namespace {

struct NpyType {
    std::string_view name;
    std::size_t bytes;
    float (*load)(const char*);
};

constexpr NpyType npy_types[] = {
    {"<f4", 4, [](const char* p) { return load<float>(p); }},
    {"<f8", 8, [](const char* p) { return static_cast<float>(load<double>(p)); }},
    {"<f2", 2, [](const char* p) { return from_half(load<std::uint16_t>(p)); }},
    {"|b1", 1, [](const char* p) { return static_cast<float>(*p != 0); }},
    {"|u1", 1, [](const char* p) { return static_cast<float>(load<std::uint8_t>(p)); }},
    {"|i1", 1, [](const char* p) { return static_cast<float>(load<std::int8_t>(p)); }},
    {"<i4", 4, [](const char* p) { return static_cast<float>(load<std::int32_t>(p)); }},
    {"<i8", 8, [](const char* p) { return static_cast<float>(load<std::int64_t>(p)); }},
};

// The text after "'key':" in the header's dictionary.
std::string_view entry(std::string_view header, std::string_view key, const std::string& file) {
    std::size_t at = header.find(fmt::format("'{}':", key));
    if (at == std::string_view::npos) throw UserError(fmt::format("'{}': the .npy header has no '{}'", file, key));
    std::string_view rest = header.substr(at + key.size() + 3);
    while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
    return rest;
}

Shape shape_of(std::string_view text, const std::string& file) {
    auto fail = [&] { throw UserError(fmt::format("'{}': cannot read the shape in the .npy header", file)); };
    Shape shape;
    if (text.empty() || text[0] != '(') fail();
    text.remove_prefix(1);
    while (true) {
        while (!text.empty() && (text[0] == ' ' || text[0] == ',')) text.remove_prefix(1);
        if (text.empty()) fail();
        if (text[0] == ')') return shape;
        std::int64_t d = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d);
        if (error != std::errc{} || d < 0 || shape.size() == 32) fail();
        shape.push_back(d);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    }
}

}  // namespace

Tensor parse_npy(const std::string& file, std::string_view bytes) {
    if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 10) throw UserError(fmt::format("'{}' is no .npy file", file));
    bool long_header = bytes[6] >= 2;
    std::size_t start = long_header ? 12 : 10;
    if (bytes.size() < start) throw UserError(fmt::format("'{}' is truncated", file));
    std::size_t length = long_header ? load<std::uint32_t>(bytes.data() + 8) : load<std::uint16_t>(bytes.data() + 8);
    if (bytes.size() - start < length) throw UserError(fmt::format("'{}' is truncated: its header should take {} bytes", file, length));
    std::string_view header = bytes.substr(start, length), data = bytes.substr(start + length);
    std::string_view descr = entry(header, "descr", file);
    if (entry(header, "fortran_order", file).starts_with("True"))
        throw UserError(fmt::format("'{}' is in Fortran order; save it with numpy.ascontiguousarray", file));
    Tensor tensor{shape_of(entry(header, "shape", file), file), {}};
    for (const NpyType& dtype : npy_types) {
        if (!descr.starts_with(fmt::format("'{}'", dtype.name))) continue;
        std::int64_t count = 1;
        for (std::int64_t d : tensor.shape)
            if (__builtin_mul_overflow(count, d, &count)) throw UserError(fmt::format("'{}': the shape in the .npy header is too large", file));
        if (static_cast<std::uint64_t>(count) > data.size() || static_cast<std::size_t>(count) * dtype.bytes != data.size())
            throw UserError(fmt::format("'{}': the shape {} needs {} values of {} bytes, the file holds {} bytes", file, to_string(tensor.shape), count,
                                        dtype.bytes, data.size()));
        tensor.values.resize(static_cast<std::size_t>(count));
        const char* from = data.data();
        for (float& value : tensor.values) value = dtype.load(from), from += dtype.bytes;
        return tensor;
    }
    throw UserError(fmt::format("'{}': dtype {} is not supported; save it as float32", file, descr.substr(0, std::min<std::size_t>(descr.find(','), 20))));
}

Tensor read_npy(const std::filesystem::path& path) { return parse_npy(path.string(), read_file(path)); }

std::string write_npy(const Tensor& tensor) {
    std::string shape;
    for (std::int64_t d : tensor.shape) shape += fmt::format("{}, ", d);
    if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
    std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
    header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');  // data begins at a multiple of 64
    header += '\n';
    std::uint16_t length = static_cast<std::uint16_t>(header.size());
    std::string out("\x93NUMPY\x01\x00", 8);
    out.append(reinterpret_cast<const char*>(&length), 2);
    out += header;
    out.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
    return out;
}

}  // namespace loopegg
