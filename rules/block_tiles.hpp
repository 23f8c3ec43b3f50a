// Tiles of a nest for graphics processors: what a block of threads computes, what of it one thread does, and which threads share sums.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "nest/schedule/gpu_estimate.hpp"
#include "nest/schedule/naive_loops.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// A tile is a term: (block-tile SUMS CHUNK THREADS OWN THREADS OWN ...), a pair for each naive loop that moves the output. SUMS threads share the longest sum,
// of which CHUNK steps pass through shared memory at a time.
// Tiles for tensor cores have a pair for each output loop as well: warps share them, and inside each the threads and what they have are laid out as the
// instruction wants them (backends/lower/lower_tensor.cpp).
enum class TileKind { shared, split, plain, tensor, split_tensor };

// So many tiles, cheapest first by the estimate, those alone that fit the machine.
std::vector<Term> block_tiles(const Statement& statement, const NaiveLoops& nest, const GpuMachine& machine, TileKind kind, std::size_t most);

// The parts of a tiled nest. Every loop of the nest is in one of them.
constexpr std::array<std::string_view, 9> block_parts{"blocks", "shared-sums", "chunks", "channel-threads", "threads", "own", "chunk", "window", "long-window"};
// The loops of one part, outermost first. With "apart-" before channel-threads, threads or own, a thread's outputs are as far apart as there are
// threads. None: there is no such part.
// The same for tensor cores: warps of a block, the threads of a warp, instructions of a thread for different outputs, what a thread has of one of these, chunks
// of a sum in steps of an instruction, and these steps.
constexpr std::array<std::string_view, 11> tensor_parts{"blocks",   "shared-sums", "chunks", "warps",        "lanes",     "products",
                                                        "fragment", "long-window", "window", "tensor-chunk", "tensor-sum"};
std::optional<std::vector<Term>> part_of_block(const NaiveLoops& nest, const Term& tile, std::string_view part);

}  // namespace loopegg
