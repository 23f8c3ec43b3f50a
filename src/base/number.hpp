// Texts that are numbers from their first character to their last.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace loopegg {

// Gives no value where the text holds anything besides the number, or where the number does not fit the type.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// A float as the double of the same shortest decimal: 1e-5f becomes 1e-5, not 9.99999974e-06.
inline double shortest_double(float value) {
    char text[64];
    double out = value;
    auto end = std::to_chars(text, text + sizeof text, value).ptr;
    std::from_chars(text, end, out);
    return out;
}

}  // namespace loopegg
