// Tiles of a nest for graphics processors: what a block of threads computes, which part of it one thread computes, and which threads share sums.
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
// Tiles for tensor cores are (tensor-tile DEPTH SUMS CHUNK THREADS OWN ...): an instruction takes DEPTH steps of a sum. Warps share the output loops, and
// inside a warp the threads and their elements are laid out as the instruction needs them (backends/lower/lower_tensor.cpp).
enum class TileKind { shared, split, plain, tensor, split_tensor };

std::optional<std::int64_t> depth_of_tensor_tile(const Term& tile);  // none for other tiles

// At most `most` tiles that fit the machine, cheapest first by the estimate.
std::vector<Term> block_tiles(const Statement& statement, const NaiveLoops& nest, const GpuMachine& machine, TileKind kind, std::size_t most);

// The parts of a tiled nest. Every loop of the nest is in one of these parts.
constexpr std::array<std::string_view, 9> block_parts{"blocks", "shared-sums", "chunks", "channel-threads", "threads", "own", "chunk", "window", "long-window"};
// The parts of a nest that is tiled for tensor cores. Besides those above: the warps of a block, the threads of a warp (lanes), the instructions of a thread
// for different outputs (products), what a thread holds of one such output (fragment), chunks of a sum in steps of an instruction, and these steps.
constexpr std::array<std::string_view, 11> tensor_parts{"blocks",   "shared-sums", "chunks", "warps",        "lanes",     "products",
                                                        "fragment", "long-window", "window", "tensor-chunk", "tensor-sum"};
// The loops of one part of either list, outermost first. With "apart-" before channel-threads, threads or own, the distance between a thread's outputs is
// the number of threads. Gives none where there is no such part.
std::optional<std::vector<Term>> part_of_block(const NaiveLoops& nest, const Term& tile, std::string_view part);

}  // namespace loopegg
