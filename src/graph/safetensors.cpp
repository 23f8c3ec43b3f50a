#include "graph/safetensors.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "graph/floats.hpp"

namespace loopegg {
namespace {

constexpr std::uint64_t max_header = 100u << 20;  // what the format's own reader allows

struct SafetensorsType {
    std::string_view name;
    std::uint64_t bytes;
    float (*load)(const char*);  // null: no float, not read
};

constexpr SafetensorsType safetensors_types[] = {
    {"F32", 4, [](const char* p) { return load<float>(p); }},
    {"F64", 8, [](const char* p) { return static_cast<float>(load<double>(p)); }},
    {"F16", 2, [](const char* p) { return from_half(load<std::uint16_t>(p)); }},
    {"BF16", 2, [](const char* p) { return from_bfloat16(load<std::uint16_t>(p)); }},
    {"I64", 8, nullptr},
    {"I32", 4, nullptr},
    {"I16", 2, nullptr},
    {"I8", 1, nullptr},
    {"U64", 8, nullptr},
    {"U32", 4, nullptr},
    {"U16", 2, nullptr},
    {"U8", 1, nullptr},
    {"BOOL", 1, nullptr},
    {"F8_E4M3", 1, nullptr},
    {"F8_E5M2", 1, nullptr},
};

struct Entry {
    std::string name;
    const SafetensorsType* dtype;
    Shape shape;
    std::uint64_t begin, end;
    JsonView view;
};

Entry read_entry(const std::string& name, const JsonView& view, std::uint64_t data_size) {
    view.only({"dtype", "shape", "data_offsets"});
    JsonView dtype_view = view.at("dtype"), shape_view = view.at("shape"), offsets = view.at("data_offsets");
    auto dtype =
        std::find_if(std::begin(safetensors_types), std::end(safetensors_types), [&](const SafetensorsType& d) { return d.name == dtype_view.text(); });
    if (dtype == std::end(safetensors_types)) dtype_view.fail(fmt::format("unknown dtype '{}'", dtype_view.text()));
    std::vector<JsonView> range = offsets.items();
    if (range.size() != 2) offsets.fail(fmt::format("data_offsets needs 2 numbers, found {}", range.size()));
    std::int64_t begin = range[0].integer(), end = range[1].integer(), size = static_cast<std::int64_t>(dtype->bytes);
    if (begin < 0 || end < begin || static_cast<std::uint64_t>(end) > data_size)
        offsets.fail(fmt::format("tensor '{}' claims bytes {} to {} of {} that are there", name, begin, end, data_size));
    for (const JsonView& d : shape_view.items())
        if (d.integer() < 0 || __builtin_mul_overflow(size, d.integer(), &size))
            d.fail(fmt::format("a dimension of {} in the shape of '{}'", d.integer(), name));
    if (size != end - begin) offsets.fail(fmt::format("tensor '{}' needs {} bytes by its shape and dtype, its data_offsets give {}", name, size, end - begin));
    return {name, dtype, shape_view.integers(), static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end), view};
}

}  // namespace

Weights parse_safetensors(const std::string& file, std::string_view bytes) {
    if (bytes.size() < 8) throw UserError(fmt::format("'{}' is no safetensors file: it has {} bytes, the header's length alone takes 8", file, bytes.size()));
    std::uint64_t header = load<std::uint64_t>(bytes.data());
    if (header > bytes.size() - 8 || header > max_header)
        throw UserError(fmt::format("'{}' is no safetensors file or is truncated: its header should take {} bytes, {} follow", file, header, bytes.size() - 8));
    std::string_view data = bytes.substr(8 + header);
    JsonView root = read_json(make_source(file + " (header)", std::string(bytes.substr(8, header))));
    std::vector<Entry> entries;
    for (const auto& [name, view] : root.members())
        if (name != "__metadata__") entries.push_back(read_entry(name, view, data.size()));
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    std::uint64_t at = 0;
    for (const Entry& e : entries) {
        if (e.begin != at)
            e.view.fail(
                fmt::format("tensor '{}' begins at byte {}, the one before it ends at {}: tensors may neither overlap nor leave gaps", e.name, e.begin, at));
        at = e.end;
    }
    if (at != data.size()) throw UserError(fmt::format("'{}': {} bytes follow the last tensor", file, data.size() - at));
    Weights weights;
    for (Entry& e : entries) {
        if (!e.dtype->load) continue;
        Tensor& tensor = weights[e.name];
        tensor.shape = std::move(e.shape);
        tensor.values.resize((e.end - e.begin) / e.dtype->bytes);
        const char* from = data.data() + e.begin;
        for (float& value : tensor.values) value = e.dtype->load(from), from += e.dtype->bytes;
    }
    return weights;
}

Weights read_safetensors(const std::filesystem::path& path) { return parse_safetensors(path.string(), read_file(path)); }

std::string write_safetensors(const Weights& weights) {
    nlohmann::json header = nlohmann::json::object();
    std::uint64_t at = 0;
    for (const auto& [name, tensor] : weights) {
        std::uint64_t size = tensor.values.size() * sizeof(float);
        header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, at + size}}};
        at += size;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // the tensors begin at a multiple of 8
    std::uint64_t length = text.size();
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    out.reserve(8 + text.size() + at);
    out += text;
    for (const auto& [name, tensor] : weights) out.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
    return out;
}

}  // namespace loopegg
