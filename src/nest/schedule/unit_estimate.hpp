// Estimates what a schedule costs whose products a matrix unit multiplies, in the units of cpu_estimate.hpp.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "base/term.hpp"
#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"

namespace loopegg {

// The numbers of such a schedule that decide its cost.
struct UnitShape {
    std::string kind;                         // of numbers
    double rows = 1, columns = 1, depth = 1;  // of one instruction
    std::optional<std::size_t> columns_loop;  // the naive loop of the columns
    double own = 1;                           // tiles that are summed up at once
    std::array<double, 2> loaded{1, 1};       // tiles of each operand that these need
    double tasks = 1;                         // pieces that the cores share
    double copies = 1;                        // how often the input is copied in all
    bool own_weights = false;                 // each core reads a part of the weights that the others do not read
    bool copied_together = false;             // the cores copy the input together, before they begin
};

double unit_cost(const NaiveLoops& nest, const UnitShape& shape, const MatrixUnit& unit, const VectorMachine& machine);

// The first unit that such a tile fits; null: none does.
const MatrixUnit* unit_for(const UnitShape& shape, const std::vector<MatrixUnit>& units);

// The shape of a schedule, if it is one with a unit: (bind tensor.KIND ROWS (unroll DEPTH (unroll COLUMNS ...))).
std::optional<UnitShape> unit_shape(const NaiveLoops& nest, const Term& schedule);

}  // namespace loopegg
