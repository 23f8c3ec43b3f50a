// Questions about whole numbers that isl answers: whether some values satisfy all of several conditions, and how two sets compare.
//
// Conditions that share no variable are asked apart (all of them can hold at once when each group can). No question is asked twice, because
// the schedules of one e-class differ in a few loops, so most questions about one schedule were asked about another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace loopegg
