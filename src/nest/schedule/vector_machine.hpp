// What rules and estimates need to know of a processor.
#pragma once

namespace loopegg {

struct VectorMachine {
    int cores = 2;
    int lanes = 4;         // floats in a vector
    int registers = 32;    // vectors that fit
    bool graphics = false; // then cores are multiprocessors, and loops are bound to blocks and threads
};

}  // namespace loopegg
