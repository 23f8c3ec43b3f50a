// Which instances of an operator's loop nest are run: everything, or the part that neural rules left.
//
// An operator's iterators are its axes by name (conv2d: n g co ci oh ow kh kw; linear: n co ci; see axes_of in operators).
// A digit is one place of an iterator's value written in mixed radix: digit(i) = (i / stride) % radix. Every restriction that
// the rules can make is a statement about digits: a range of one (bottleneck), the equality of two (group), and a union of such
// parts (after a cut of the domain). This form is compact (depthwise over 512 channels is one equality) and closed under splitting.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loopegg {

struct Digit {
    std::string axis;
    std::int64_t stride = 1, radix = 1;
    std::int64_t of(std::int64_t value) const { return value / stride % radix; }
    friend bool operator==(const Digit&, const Digit&) = default;
    friend auto operator<=>(const Digit&, const Digit&) = default;
};

// lo <= digit < hi
struct DigitRange {
    Digit digit;
    std::int64_t lo = 0, hi = 0;
    friend bool operator==(const DigitRange&, const DigitRange&) = default;
    friend auto operator<=>(const DigitRange&, const DigitRange&) = default;
};

// Two digits of equal radix that walk together: the diagonal blocks.
struct DigitPair {
    Digit first, second;
    friend bool operator==(const DigitPair&, const DigitPair&) = default;
    friend auto operator<=>(const DigitPair&, const DigitPair&) = default;
};

// All ranges and all pairs hold.
struct DomainPart {
    std::vector<DigitRange> ranges;
    std::vector<DigitPair> diagonals;
    friend bool operator==(const DomainPart&, const DomainPart&) = default;
    friend auto operator<=>(const DomainPart&, const DomainPart&) = default;
};

// How values that no instance computes any more come back (none: there are no such values; see output_sources).
// Rules propose 'pointwise', but no node has it: in a graph it becomes a 1x1 convolution of its own (nest/domain/with_domain.hpp).
// 'propagate' is no value here, because it becomes ordinary shapes of the graph.
enum class Restore { none, repeat, zero, pointwise };

// A union of disjoint parts. No part at all means the whole nest; see whole().
struct Domain {
    std::vector<DomainPart> parts;
    Restore restore = Restore::none;

    bool whole() const { return parts.empty(); }
    bool contains(const std::map<std::string, std::int64_t>& instance) const;
    friend bool operator==(const Domain&, const Domain&) = default;
};

struct Axis;  // graph/operators.hpp

// Throws NodeProblem when a domain makes no sense over these axes: unknown names, strides that do not divide, empty or
// overlapping parts, unequal radices, outputs that nothing computes or restores.
void check_domain(const Domain& domain, const std::vector<Axis>& axes);

// "co/16%4 == ci/16%4" and "0 <= oh%2 < 1": how a part's conditions are written in model.json and in reports.
std::string to_string(const DigitRange& range);
std::string to_string(const DigitPair& pair);
std::string to_string(const Domain& domain);  // "whole", or parts joined by " or ", and the restore
std::string to_string(Restore restore);
std::string restore_word(Restore restore);                    // as nests say it: empty where nothing comes back
std::optional<Restore> restore_named(std::string_view name);  // repeat, zero or pointwise

// Reads one condition into the part; returns what is wrong with it, or "".
std::string add_condition(DomainPart& part, const std::string& text);

}  // namespace loopegg
