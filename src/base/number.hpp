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

}  // namespace loopegg
