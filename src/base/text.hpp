// Small helpers over text that more than one room needs.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loopegg {

std::optional<std::size_t> first_invalid_utf8(std::string_view text);  // offset of the first bad byte

// Shell-style matching over a whole name. '*' matches any run of characters (dots too), '?' one character, '[ab]' and '[a-z]' one character of the set,
// and '[!a]' one character outside the set.
bool glob_matches(std::string_view pattern, std::string_view name);

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// 1234567 -> "1,234,567"
std::string with_commas(long long value);

// 'did you mean': the known name nearest to what was typed.

// "did you mean 'conv2d'?" when some name is near enough to be meant, otherwise "".
std::string did_you_mean(std::string_view typed, std::span<const std::string> known);
std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known);

}  // namespace loopegg
