// Estimates what a schedule costs on a graphics processor, from occupancy, what moves through shared memory and from global memory, and what waits for
// what. "Far" means global memory.
#pragma once
#include <cstdint>
#include <span>

#include "base/term.hpp"
#include "nest/schedule/gpu_machine.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// The numbers of a schedule that decide its cost.
struct GpuShape {
    double blocks = 1, threads = 1;  // threads of a block
    double outputs = 1;              // of a thread, kept in registers
    double sums = 1;                 // threads that share a sum
    double steps = 1;                // multiply-adds of a thread
    double loads = 2;                // for each multiply-add, from shared or global memory
    double far_loads = 0;            // those of the loads that go to global memory
    double far_lines = 0;            // lines of memory that a warp asks for with these loads: few where neighbours read neighbours
    double chunks = 1;               // how often a block fills its shared tiles
    double copied = 0, tested = 0;   // copies that a thread makes into shared tiles: of four elements at once, and of one padded element with a test
    double steps_per_turn = 1;       // of the innermost loop
    bool tensor = false;             // tensor cores do the multiply-adds
    double tensor_depth = 8;         // the steps of a sum that one of their instructions takes
    double in_word = 1;              // rounded operands that share a 32-bit word of shared memory
    double ahead = 0;                // copied elements that a thread keeps in registers while it uses the tile before them; 0: no tile is staged ahead
    std::int64_t shared_bytes = 0;
    double far_bytes = 0;    // that all blocks together ask global memory for
    double least_bytes = 0;  // the fewest bytes that global memory must give: every operand once
};

// Lines of 128 bytes that the threads of a warp touch when each reads the float at its address.
double lines_of_warp(std::span<const std::int64_t> addresses);
constexpr std::int64_t warp_threads = 32;

// Floats that a thread keeps at most of tiles that are staged ahead. Where a thread would keep more, tiles are copied when they are needed.
constexpr std::int64_t max_kept_ahead = 48, max_kept_packed = 72;  // the latter of operands that are packed into words
constexpr double rows_of_tensor_loads = 2;  // a warp has 16 rows of an instruction and 8 columns, and each thread as many outputs of either
constexpr std::int64_t packed_at_once = 8;  // operands that a thread packs at once

// The copies of `elements` operands into a shared tile whose words pack several of them: packed weights are copied as they are. A block does this `turns`
// times, and all blocks together `all_turns` times.
void add_packed_copies(GpuShape& shape, double elements, double threads, double turns, double all_turns, bool weights);

double operand_bytes(const Statement& statement);  // of every buffer, once

// In microseconds, without the launch; infinite where a block does not fit.
double gpu_cost(const GpuShape& shape, const GpuMachine& machine);

// The cost of a NEST's schedule; infinite for a schedule that has no threads or cannot be resolved.
double gpu_cost(const Term& nest, const GpuMachine& machine);

}  // namespace loopegg
