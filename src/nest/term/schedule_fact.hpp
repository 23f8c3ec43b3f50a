// The fact of a list of loops: the digits that it enumerates, in one form however they were split, and the parts of the domain that it keeps.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "nest/term/axis.hpp"

namespace loopegg {

// An interval of digits of one base: those of strides stride .. limit.
struct OpenDigits {
    Term base;
    std::int64_t base_extent, stride, limit;
    friend bool operator==(const OpenDigits& a, const OpenDigits& b) { return a.stride == b.stride && a.limit == b.limit && a.base == b.base; }
};

struct ScheduleFact {
    std::vector<OpenDigits> open;              // sorted
    std::vector<std::vector<Term>> parts{{}};  // each a conjunction of restrictions, sorted; their union
    double instances = 1;                      // visited by the list (exact where factors divide)
    std::int64_t output_tile = 1;              // output elements that the list writes, as far as its own digits go
    bool reduces = false;                      // the list enumerates digits of a reduction
    std::string broken{};                      // why the list is no schedule: "walks co twice"
};

// Opens a digit. When that opens all digits of a base that is made of other axes, opens these axes. Returns false where the digit was open already.
bool open_digit(std::vector<OpenDigits>& open, const AxisDigit& digit);

void add_restriction(std::vector<Term>& part, const Term& restriction);  // once, sorted

// Parts that differ in one span, and whose spans meet, become one part; then all are sorted.
void join_parts(std::vector<std::vector<Term>>& parts);

void count_instances(ScheduleFact& fact);  // instances, output_tile, reduces

Term key_of(const ScheduleFact& fact);  // equal facts have equal keys

}  // namespace loopegg
