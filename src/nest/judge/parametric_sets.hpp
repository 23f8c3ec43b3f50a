// Sets of points whose conditions hold parameters: questions about all values of the parameters at once, which isl answers exactly.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace loopegg {

// Values of parameters and variables, by name.
using SizePoint = std::map<std::string, std::int64_t>;

// The names are identifiers. Conditions are in isl's notation over both kinds of names: "0 <= x < n", "(x = 0 or x mod 2 = 1)".
struct SizeSpace {
    std::vector<std::string> parameters, variables;
};
using SizeConditions = std::vector<std::string>;  // all hold; empty: always true

struct SizeAnswer {
    enum class Kind { yes, no, unknown };  // unknown: isl gave up
    Kind kind = Kind::unknown;
    SizePoint example{};  // of a `no`
    bool yes() const { return kind == Kind::yes; }
};

// Whether no values of parameters and variables meet all conditions.
SizeAnswer never(const SizeSpace& space, const SizeConditions& conditions);
// Whether every point that meets all of `conditions` meets all of one of `alternatives`.
SizeAnswer always_one_of(const SizeSpace& space, const SizeConditions& conditions, const std::vector<SizeConditions>& alternatives);
// Whether, for all values of the parameters that meet `on_parameters`, some values of the variables meet all of one of `alternatives`.
SizeAnswer always_some(const SizeSpace& space, const SizeConditions& on_parameters, const std::vector<SizeConditions>& alternatives);

}  // namespace loopegg
