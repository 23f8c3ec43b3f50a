// Domains as sets: which values each axis takes, how many instances there are, and what they read and write.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "graph/domain.hpp"
#include "graph/operators.hpp"

namespace loopegg {

// A product of value sets, one for each axis (in the order of the axes it was made for), and the part of the domain that it came from.
struct ProductSet {
    std::vector<std::vector<std::int64_t>> values;
    std::size_t part = 0;
};

// Disjoint products whose union is the domain: one for each block of every diagonal.
std::vector<ProductSet> product_sets(const Domain& domain, const std::vector<Axis>& axes);

// lo, lo + stride, ... (count of them)
struct StridedRun {
    std::int64_t lo = 0, count = 0, stride = 1;
    friend bool operator==(const StridedRun&, const StridedRun&) = default;
};

// A strided box, one run for each axis.
struct Box {
    std::vector<StridedRun> runs;
    std::size_t part = 0;
};

// Disjoint boxes whose union is the domain.
std::vector<Box> boxes(const Domain& domain, const std::vector<Axis>& axes);
std::vector<StridedRun> as_runs(const std::vector<std::int64_t>& sorted);  // few runs, by taking the longest from the front

std::int64_t instance_count(const Domain& domain, const std::vector<Axis>& axes);

// For each tuple of values of the axes named (row-major in the order of `onto`): does any instance have it?
std::vector<char> projection(const Domain& domain, const std::vector<Axis>& axes, const std::vector<std::string>& onto);
// How many of these tuples some instance has.
std::int64_t projected_count(const Domain& domain, const std::vector<Axis>& axes, const std::vector<std::string>& onto);

// Where each output element (row-major over the output axes) gets its value: its own index when an instance computes it, the index
// of a computed element under restore repeat, -1 for zero. Repeat maps each restricted digit v to lo + (v - lo) mod (hi - lo), so a kept
// block of channels is tiled and a kept row is copied. With several parts, the nearest source wins, and among equally near sources the first part.
// Throws UserError for restore pointwise, whose outputs are no copies.
std::vector<std::int64_t> output_sources(const Domain& domain, const std::vector<Axis>& axes);

// The axes that some condition names, in their order.
std::vector<Axis> axes_named_by(const Domain& domain, const std::vector<Axis>& axes);

// A domain with its conditions looked up: the membership test for a loop that visits every instance.
class DomainTest {
public:
    DomainTest(const Domain& domain, const std::vector<Axis>& axes);
    bool contains(const std::int64_t* instance) const;  // values in the order of the axes

private:
    struct Place {
        std::size_t axis;
        std::int64_t stride, radix;
    };
    struct Range {
        Place digit;
        std::int64_t lo, hi;
    };
    struct Part {
        std::vector<Range> ranges;
        std::vector<std::pair<Place, Place>> diagonals;
    };
    std::vector<Part> parts_;
};

}  // namespace loopegg
