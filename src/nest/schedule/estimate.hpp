// About how long a schedule takes on a processor with vector registers, from its term alone: what extraction goes by before anything is measured.
#pragma once
#include "base/term.hpp"
#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"

namespace loopegg {

// What a schedule does with each of the naive loops, and with the cores.
struct ScheduleShape {
    std::vector<std::int64_t> body;     // by loop: iterations that are written out in the innermost body
    std::vector<std::int64_t> lanes;    // by loop: those that are lanes of a vector
    double tasks = 1;                   // pieces that the cores share
    std::vector<bool> shared{};         // by loop: the cores share its blocks
    bool copied = false;                // padded inputs are copied first ...
    bool copied_inside = false;         // ... by each core for its own piece
    bool accumulators = true;           // sums are kept in registers
    bool compiler_lanes = false;        // a plain innermost loop over neighbours, of which a compiler can make vectors
};
ScheduleShape plain_shape(const NaiveLoops& nest);

// About how long one instance takes, in units of what a multiply-add takes when nothing is in its way. Good for comparing schedules of one nest.
double shape_cost(const NaiveLoops& nest, const ScheduleShape& shape, const VectorMachine& machine);

// About how long an instance takes on a graphics processor; infinite where nothing is bound to its blocks and threads.
double block_cost(const NaiveLoops& nest, const Term& schedule, const VectorMachine& machine);

// The same of a NEST's schedule, whatever rules made it; the parts of a cut domain each by its own naive loops. `naive`: the naive schedule of the same domain.
double schedule_cost(const Statement& statement, const Term& naive, const Term& schedule, const VectorMachine& machine);
double schedule_cost(const Term& nest, const VectorMachine& machine);

}  // namespace loopegg
