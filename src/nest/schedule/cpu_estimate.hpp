// What a schedule may cost on a processor with vectors: what its innermost body loads and keeps in registers, what the cores share, what is copied first.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/term.hpp"
#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"

namespace loopegg {

// A schedule by its numbers, beside the naive loops of its nest.
struct CpuShape {
    std::vector<std::int64_t> body;    // by naive loop: iterations that are written out in the innermost body, as vectors where the lanes are
    std::optional<std::size_t> along;  // the loop that the lanes run along
    std::int64_t lanes = 1;
    // Without lanes: the innermost loop that stays, where it walks the output in order. The compiler makes vectors of it where whole sums are inside.
    std::optional<std::size_t> columns;
    double tasks = 1;            // pieces that the cores share
    bool shared = false;         // by a parallel loop
    bool staged_output = false;  // sums stay in registers until they are done
    // of a padded input: by one core before the others begin, by each with the rows around
    enum class Copy { none, once, rows, own, whole } copy = Copy::none;
    // its own, by each what it alone reads, or by each all of it
    std::int64_t rows = 1;      // of a piece, with Copy::rows
    bool weights_stay = false;  // the cores share the lanes' loop, so that each goes through its own weights again and again
};

// About how long a multiply-add takes, in units of what it takes when nothing else is in its way. Good for comparing schedules of one nest.
double cpu_cost(const NaiveLoops& nest, const CpuShape& shape, const VectorMachine& machine);

// The numbers of a list of loops over what the naive ones visit. A loop that is no digit of one of them is taken for a plain one.
CpuShape cpu_shape(const NaiveLoops& nest, const Term& schedule);

}  // namespace loopegg
