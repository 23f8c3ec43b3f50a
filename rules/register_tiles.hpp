// Register tiles of a nest: the blocks of output elements that a step of a sum works on, kept in vector registers until the sum is done.
#pragma once
#include <optional>
#include <vector>

#include "nest/schedule/estimate.hpp"

namespace loopegg {

// How much of some output loops, the vector's own first. As a term: (tile AXIS LANES VECTORS AXIS COUNT ...).
struct RegisterTile {
    struct Part {
        Term axis;
        std::int64_t lanes = 1, count = 1;
        std::int64_t elements() const { return lanes * count; }
    };
    std::vector<Part> parts;

    const Term& vector_axis() const { return parts.front().axis; }
    Part of(const Term& axis) const;     // one element of an axis that is not in the tile
    std::int64_t accumulators() const;   // vectors
};

Term to_term(const RegisterTile& tile);
std::optional<RegisterTile> read_tile(const Term& term);

// The tiles that fit the machine, cheapest by the estimate first, whichever way the cores share what is outside; at most so many.
std::vector<RegisterTile> register_tiles(const NaiveLoops& nest, const VectorMachine& machine, std::size_t most);

// Widths of vectors that an extent comes in.
std::vector<std::int64_t> lane_counts(const VectorMachine& machine, std::int64_t extent);

// Steps of a sum that are written out: a short one whole (all of them, or the innermost alone), four of a long one that is innermost.
std::int64_t unrolled_steps(const NaiveLoops& nest, std::size_t reduction, bool all);

}  // namespace loopegg
