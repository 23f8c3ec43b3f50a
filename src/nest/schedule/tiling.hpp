// Register tiles of a nest's naive loops: what a sketch is made of, and what it may cost.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "nest/schedule/sketch.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// One loop of the naive schedule, by what it means for the statement.
struct NaiveLoop {
    Term axis;
    std::int64_t extent;
    bool reduction = true;       // walks no output element
    bool contiguous = false;     // walks the output's innermost dimension
    bool weights_only = true;    // no input depends on it: one input value serves all of its iterations
    std::vector<std::vector<std::int64_t>> strides{};   // by read and dimension: how far one iteration goes
    bool moves(std::size_t read) const;
};

struct NaiveLoops {
    std::vector<NaiveLoop> loops;   // outermost first
    bool padded = false;            // some read may leave its buffer

    std::optional<std::size_t> innermost_reduction() const;
    std::optional<std::size_t> row_loop() const;   // the output loop before the contiguous one: rows of an image
};
NaiveLoops naive_loops(const Statement& statement, Term schedule);

// What divides a loop's extent, the smallest first, up to `most`.
std::vector<std::int64_t> divisors(std::int64_t extent, std::int64_t most);

// How they are tiled.
struct Tiling {
    std::size_t vector_loop;            // which loop the lanes run along
    std::int64_t vector = 1;            // lanes
    std::int64_t vectors = 1;           // vectors of that loop in the tile
    std::optional<std::size_t> other{};   // a second output loop in the tile, and how much of it
    std::int64_t other_tile = 1;
    std::optional<std::size_t> third{};
    std::int64_t third_tile = 1;
    std::int64_t rows = 0;              // >0: the cores share blocks of so many of the loop before the contiguous one
    bool unroll_first = true;           // unroll all small reductions, or only the innermost
    bool weights_stay = false;          // the cores share the vector loop, so that each goes through its own weights again and again

    std::int64_t accumulators() const { return vectors * other_tile * third_tile; }
    std::int64_t size(std::size_t loop) const;                                   // of an output loop in the tile, as vectors of the vector loop
    std::int64_t unrolled(const NaiveLoops& nest, std::size_t reduction) const;  // iterations of a reduction that are written out
};

// About how long a multiply-add takes, in units of what it takes when nothing else is in its way. Good for comparing tilings of one nest.
double tiling_cost(const NaiveLoops& nest, const Tiling& tiling, const VectorMachine& machine);

}  // namespace loopegg
