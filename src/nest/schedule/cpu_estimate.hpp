// Estimates what a schedule costs on a processor with vectors, from what its innermost body loads and keeps in registers, what the cores share, and what
// is copied first.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/term.hpp"
#include "nest/schedule/cpu_costs.hpp"
#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"

namespace loopegg {

// The numbers of a schedule that decide its cost. They refer to the naive loops of its nest.
struct CpuShape {
    std::vector<std::int64_t> body;    // for each naive loop: how many iterations are written out in the innermost body, as vectors along `along`
    std::optional<std::size_t> along;  // the loop that the lanes run along
    std::int64_t lanes = 1;
    // Without lanes: the innermost loop that stays a loop, if it walks the output in order. The compiler makes vectors of this loop where whole sums are
    // inside it.
    std::optional<std::size_t> along_by_compiler;
    double tasks = 1;            // pieces that the cores share
    bool shared = false;         // the cores share the pieces by a parallel loop
    bool staged_output = false;  // sums stay in registers until they are done
    // How a padded input is copied. once: by one core before the others begin. rows: each core copies its own rows and the rows around them. own: each
    // core copies what it alone reads. whole: each core copies all of the input.
    enum class Copy { none, once, rows, own, whole } copy = Copy::none;
    std::int64_t rows = 1;      // of a piece, with Copy::rows
    bool gathers = false;       // each core copies its part of an input that is not padded, so that the steps of a sum are neighbours
    bool weights_stay = false;  // the cores share the lanes' loop, so that each goes through its own weights again and again
};

// The parts of a schedule, one for each way from its outermost loop to its innermost body, and how many instances each part visits.
struct CpuPart {
    CpuShape shape;
    double instances = 1;
};
std::vector<CpuPart> cpu_parts(const NaiveLoops& nest, const Term& schedule);

// About how long a multiply-add takes, in units of the time of an unhindered multiply-add. Good for comparing schedules of one nest.
double cpu_cost(const NaiveLoops& nest, const CpuShape& shape, const VectorMachine& machine, const CpuCosts& costs = shipped_cpu_costs());
// The same for parts that follow each other: each part counts as much as it has instances.
double cpu_cost(const NaiveLoops& nest, std::span<const CpuPart> parts, const VectorMachine& machine, const CpuCosts& costs = shipped_cpu_costs());
// The same for a schedule that visits what the naive loops visit. A loop that is no digit of a naive loop counts as a plain loop.
double cpu_cost(const NaiveLoops& nest, const Term& schedule, const VectorMachine& machine);

}  // namespace loopegg
