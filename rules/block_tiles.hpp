// Tiles of a nest for graphics processors: what a block of threads computes, and what of it one thread does.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"

namespace loopegg {

// A tile is a word and its numbers, as a term: (shared-tile CHANNELS ROWS COLUMNS OWN-CHANNELS OWN-ROWS CHUNK), (plain-tile THREADS OWN-CHANNELS).
// Of a convolution whose chunks of inputs and weights fit the memory that threads share; none where they do not, or it is too small. `part`: the nest is one of several
// that run one after another.
std::optional<Term> shared_tile(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, bool part);
// Of any nest.
Term plain_tile(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine);

// The loops of one part of a tiled nest, outermost first. Of a shared tile: blocks, outer-sums, chunks, channel-threads, threads, chunk, window, long-window,
// own-channels, own-rows. Of a plain one: blocks, threads, sums, window, own. None: there is no such part.
std::optional<std::vector<Term>> part_of_block(const Statement& statement, const NaiveLoops& nest, const Term& tile, std::string_view part);

}  // namespace loopegg
