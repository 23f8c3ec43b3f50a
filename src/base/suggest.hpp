// 'did you mean': the known name nearest to what was typed.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loopegg {

// "did you mean 'conv2d'?" when some name is near enough to be meant, otherwise "".
std::string did_you_mean(std::string_view typed, std::span<const std::string> known);
std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known);

}  // namespace loopegg
