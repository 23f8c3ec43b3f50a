// Tiles of a nest for processors with vectors: what is kept in registers while a sum runs, and what the cores share.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// A tile is a term: (register-tile SHARED ALONG LANES ROWS WINDOW SIZE SIZE ...). The lanes run along the naive loop with the number ALONG. A tile has SIZE
// iterations, or SIZE vectors, of each naive loop that moves the output. The innermost WINDOW sums are written out as far as they are short. The cores
// share one loop:
enum class SharedLoop {
    first,     // the outermost
    rows,      // blocks of ROWS rows of an image
    weights,   // the one that the lanes run along: each core goes through its own weights again and again
    channels,  // the outermost, where each iteration has an input of its own and this input is padded: each core copies what it alone reads
    // all loops but the one that the lanes run along, as one loop: where no input is padded, and the outermost loop alone gives the cores unequal shares
    blocks,
    // the same, where no input is padded, and no whole number of vectors fills the lanes' loop: whole vectors come first, and a shorter one is the rest
    cut,
    // blocks of ROWS rows, where no input is padded, and the steps of a sum are far apart in memory: each core copies its rows
    copied,
};

// At most `most` tiles, cheapest first by the estimate. Empty where the statement sums nothing up.
std::vector<Term> register_tiles(const NaiveLoops& nest, const VectorMachine& machine, SharedLoop shared, std::size_t most);

// The parts of a tiled nest. Every loop of the nest is in one of these parts.
constexpr std::array<std::string_view, 6> tile_parts{"shared", "outer", "sums", "window", "own", "lanes"};
// The loops of one part, outermost first. Gives none where there is no such part. Of a nest that is cut, the whole vectors have these parts.
std::optional<std::vector<Term>> part_of_tile(const NaiveLoops& nest, const Term& tile, std::string_view part);
// The same for the rest of a nest that is cut. The rest shares the loops of the part "shared" with the whole vectors.
std::optional<std::vector<Term>> part_of_rest(const NaiveLoops& nest, const Term& tile, std::string_view part);

}  // namespace loopegg
