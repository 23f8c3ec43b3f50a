// A graphics processor, as rules and estimates see it.
#pragma once
#include <compare>
#include <cstdint>
#include <vector>

#include "nest/schedule/matrix_unit.hpp"

namespace loopegg {

// What an estimate needs to know of a graphics processor, by its data sheet.
struct GpuMachine {
    int cores = 132, lanes = 128;                                               // multiprocessors, and the multiply-adds that one of them does in a cycle
    std::int64_t threads = 2048, registers = 65536, shared_bytes = 228 * 1024;  // of a multiprocessor
    std::int64_t block_shared_bytes = 48 * 1024, block_threads = 1024;
    double ghz = 1.98, memory_gbs = 4800;
    std::vector<MatrixUnit> units{};  // tensor cores that a user allows

    friend auto operator<=>(const GpuMachine&, const GpuMachine&) = default;
};

}  // namespace loopegg
