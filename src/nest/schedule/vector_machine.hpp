// A processor with caches and vectors, as rules and estimates see it.
#pragma once
#include <compare>
#include <vector>

#include "nest/schedule/matrix_unit.hpp"

namespace loopegg {

struct VectorMachine {
    int cores = 1;
    int lanes = 4;                    // floats in a vector
    int registers = 32;               // how many vectors the registers hold
    bool lane_factors = true;         // one lane of a register may be a factor (Arm); otherwise a number that is kept takes a register of its own
    std::vector<MatrixUnit> units{};  // that a user allows

    friend auto operator<=>(const VectorMachine&, const VectorMachine&) = default;
};

}  // namespace loopegg
