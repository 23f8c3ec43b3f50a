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
};

// At most `most` tiles, cheapest first by the estimate. Empty where the statement sums nothing up.
std::vector<Term> register_tiles(const NaiveLoops& nest, const VectorMachine& machine, SharedLoop shared, std::size_t most);

// The parts of a tiled nest. Every loop of the nest is in one of these parts.
constexpr std::array<std::string_view, 6> tile_parts{"shared", "outer", "sums", "window", "own", "lanes"};
// The loops of one part, outermost first. Gives none where there is no such part.
std::optional<std::vector<Term>> part_of_tile(const NaiveLoops& nest, const Term& tile, std::string_view part);

}  // namespace loopegg
