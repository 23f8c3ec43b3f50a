#include "nest/term/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/error.hpp"

namespace loopegg {
namespace {

bool is_tensor_loop(const Term& t) { return t.is("bind", 3) && is_tensor_place(t[0]); }

// Returns whether a loop was found.
bool bind_first_serial(Term& t, const Term& place) {
    if (t.is("at", 2)) {
        t = Term("bind", {place, t[0], t[1]});
        return true;
    }
    if (t.size() == 0) return false;
    std::vector<Term> children(t.children().begin(), t.children().end());
    bool found = false;
    // Goes into both parts of a cut domain, and otherwise into the rest of the list.
    for (std::size_t i = t.is("cat", 2) ? 0 : children.size() - 1; i < children.size(); ++i) found = bind_first_serial(children[i], place) || found;
    if (found) t = Term(t.op(), std::move(children));
    return found;
}

struct Rounding {
    const char* name;
    float (*round)(float);
    std::int64_t in_word;
};
constexpr Rounding roundings[]{{"bf16", rounded_to_bf16, 2}, {"fp16", rounded_to_fp16, 2}, {"int8", rounded_to_int8, 4}, {"tf32", rounded_to_tf32, 1}};

}  // namespace

bool is_tensor_place(const Term& place) { return place.op().text().starts_with(tensor_place); }

const std::vector<std::string>& rounding_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Rounding& r : roundings) all.emplace_back(r.name);
        return all;
    }();
    return names;
}

float rounded_to_tf32(float value) {
    if (!std::isfinite(value)) return value;
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000u) & ~0x1fffu);
}

float rounded_to_bf16(float value) {
    if (std::isnan(value)) return std::numeric_limits<float>::quiet_NaN();
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

std::uint16_t fp16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const float size = std::fabs(value);
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7fffu);
    if (size >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);  // halfway to the next power of two is even
    if (size < 0x1p-14f)                                                      // a denormal: a whole number of 2^-24
        return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(size * 0x1p24f)));
    const std::uint32_t whole = bits & 0x7fffffffu;
    return static_cast<std::uint16_t>(sign | ((whole + 0xfffu + (whole >> 13 & 1u) - (112u << 23)) >> 13));
}

float from_fp16_bits(std::uint16_t bits) {
    const float sign = bits & 0x8000u ? -1.0f : 1.0f;
    const std::uint32_t exponent = bits >> 10 & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 0x1fu) return fraction ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
    return sign *
           (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24) : std::ldexp(static_cast<float>(fraction + 1024), static_cast<int>(exponent) - 25));
}

float rounded_to_fp16(float value) { return from_fp16_bits(fp16_bits(value)); }

float rounded_to_int8(float value) { return std::isnan(value) ? value : std::clamp(std::nearbyint(value), -127.0f, 127.0f); }

std::int64_t numbers_in_word(const std::string& kind) {
    for (const Rounding& r : roundings)
        if (kind == r.name) return r.in_word;
    return 1;
}

float rounded_to(const std::string& kind, float value) {
    for (const Rounding& r : roundings)
        if (kind == r.name) return r.round(value);
    throw InternalFault("no rounding is named '" + kind + "'");
}

std::set<std::string> roundings_of(const Term& schedule) {
    std::set<std::string> all;
    if (is_tensor_loop(schedule)) all.insert(schedule[0].op().text().substr(tensor_place.size()));
    for (const Term& child : schedule.children()) all.merge(roundings_of(child));
    return all;
}

bool rounds_operands(const Term& schedule) {
    return is_tensor_loop(schedule) || std::any_of(schedule.children().begin(), schedule.children().end(), rounds_operands);
}

Term with_rounded_operands(const Term& nest, const std::string& kind) {
    Term made = nest;
    bind_first_serial(made, Term(std::string(tensor_place) + kind));
    return made;
}

}  // namespace loopegg
