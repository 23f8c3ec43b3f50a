// Questions about whole numbers that isl answers: whether some values satisfy all of several conditions, and how two sets compare.
//
// Conditions that share no variable are asked apart (all of them can hold at once when each group can). No question is asked twice, because
// the schedules of one e-class differ in a few loops, so most questions about one schedule were asked about another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <functional>
#include <map>
#include <optional>
#include "base/term.hpp"

namespace loopegg {

// 0 <= name < extent
struct IslVariable {
    std::string name;
    std::int64_t extent = 1;
};

using VariableMask = std::uint64_t;  // bit i: the variable i

// An expression or a condition in isl's notation, and the variables in it.
struct IslText {
    std::string text;
    VariableMask over = 0;
    friend bool operator==(const IslText& a, const IslText& b) { return a.text == b.text; }
};

using Conjunction = std::vector<IslText>;  // all conditions hold; empty: always true
using IslUnion = std::vector<Conjunction>;

class IslQuestions {
public:
    explicit IslQuestions(std::vector<IslVariable> variables);  // at most 64

    bool possible(const Conjunction& conditions) const;
    bool equal(const IslUnion& a, const IslUnion& b) const;
    bool strictly_within(const IslUnion& part, const IslUnion& whole) const;

private:
    std::string tuple(VariableMask over) const;
    std::string box(VariableMask over) const;
    std::string set_text(const IslUnion& sets, VariableMask over) const;
    bool possible_together(const std::vector<const IslText*>& group, VariableMask over) const;

    std::vector<IslVariable> variables_;
};

// Axes as isl reads them: expressions over the iterators, and the conditions under which they are defined.

// a R b, for R such as " = " or " < ".
IslText related(const IslText& a, const char* relation, const IslText& b);

// Adds the conditions under which the axis is defined (a span or a diagonal holds) to `conditions`. `name_of` gives the text of an iterator, by its name.
IslText axis_text(const Term& axis, const std::function<IslText(const std::string&)>& name_of, Conjunction& conditions);

// Sets of points whose conditions hold parameters: questions about all values of the parameters at once, which isl answers exactly.

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
