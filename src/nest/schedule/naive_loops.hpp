// The loops of a nest's naive schedule, by what each means for the statement. Tiles are cut from these loops.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/term.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// One loop of the naive schedule, and what the loop means for the statement.
struct NaiveLoop {
    Term axis;
    std::int64_t extent;
    bool reduction = true;                             // walks no output element
    bool contiguous = false;                           // walks the dimension of the output whose elements are neighbours in memory
    std::int64_t neighbours = 0;                       // how many iterations in a row write neighbours: all of them, or a block
    bool weights_only = true;                          // no input depends on the loop: one input value serves all of its iterations
    std::vector<std::vector<std::int64_t>> strides{};  // by read and dimension: how far one iteration goes
    bool moves(std::size_t read) const;
};

struct NaiveLoops {
    std::vector<NaiveLoop> loops;         // outermost first
    std::vector<NaiveLoop> fixed{};       // loops of one iteration: where a part of the domain is. No tile cuts them, and every tile keeps them
    std::optional<std::size_t> padded{};  // the read that may leave its buffer, and has elements tested one by one where it is not copied
    // By read: the dimension whose elements are neighbours in memory. A weight has none, because it is laid out for the lanes.
    std::vector<std::optional<std::size_t>> innermost{};
    // A sum whose steps read the input I at places that are far apart in memory. Of several such sums, the longest one. None where I is in blocks.
    struct ScatteredSum {
        std::size_t read = 0;
        std::int64_t steps = 0, bytes_apart = 0;
    };
    std::optional<ScatteredSum> scattered{};

    std::optional<std::size_t> innermost_reduction() const;
    bool sums() const { return innermost_reduction().has_value(); }
    std::optional<std::size_t> row_loop() const;  // the output loop before the contiguous one: rows of an image
};
// Whether vectors of the read may cross the edge of its buffer. Where channels are neighbours, the lanes of a vector are inside or outside together.
bool crosses_edge(const Statement& statement, const Access& read);
NaiveLoops naive_loops(const Statement& statement, Term schedule);
// Where the whole vectors of a loop end. None where whole vectors fill the loop, where there are none, and where a vector would leave a block.
std::optional<std::int64_t> end_of_whole_vectors(const NaiveLoop& loop, std::int64_t lanes);
// The nest with one loop over a span of its iterations alone.
NaiveLoops over_span(NaiveLoops nest, std::size_t loop, std::int64_t from, std::int64_t to);

// The divisors of a loop's extent up to `most`, the smallest first.
std::vector<std::int64_t> divisors(std::int64_t extent, std::int64_t most);

}  // namespace loopegg
