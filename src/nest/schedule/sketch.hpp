// Good first schedules for a processor with vector registers: register tiles with their accumulators in local storage, vectors along
// one output axis, small reductions unrolled, the outermost loop shared among cores. What a search starts from.
#pragma once
#include <vector>

#include "base/term.hpp"

namespace loopegg {

// What a sketch needs to know of a processor.
struct VectorMachine {
    int cores = 1;
    int lanes = 4;         // floats in a vector
    int registers = 32;    // vectors that fit
};

// Schedules of a NEST's instances (exact rewritings of it), most promising first; the naive schedule itself last. Never empty.
// A restricted nest keeps its restriction. `limit` bounds the length.
std::vector<Term> sketches(const Term& nest, const VectorMachine& machine, std::size_t limit = 64);

}  // namespace loopegg
