// Processors, graphics processors and their matrix units, as target files describe them and as rules and estimates use them.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace loopegg {

// A unit that multiplies whole tiles of a product. No rule names a unit: rules query the machine for those that it has.
struct MatrixUnit {
    std::string instruction;              // "tdpbf16ps": lowering knows how to write it
    std::string operands;                 // what operands are rounded to (nest/term/rounding.hpp); sums are float32, or 32-bit whole numbers
    std::int64_t rows = 1, columns = 1;   // of a tile of sums, at most
    std::int64_t depth = 1;               // steps of a sum that one instruction takes, at most
    std::int64_t packed = 1;              // neighbours of these steps that lie in one 32-bit word
    std::int64_t tiles = 1;               // registers for tiles
    double cycles = 1;                    // between two instructions on whole tiles
    double latency = 52, load = 8;        // cycles until sums can be used again, and of loading a tile of operands
    std::vector<std::string> features{};  // that a machine needs, in LLVM's words

    friend auto operator<=>(const MatrixUnit&, const MatrixUnit&) = default;
};

// A processor with caches and vectors.
struct VectorMachine {
    int cores = 1;
    int lanes = 4;                    // floats in a vector
    int registers = 32;               // how many vectors the registers hold
    bool lane_factors = true;         // one lane of a register may be a factor (Arm); otherwise a number that is kept takes a register of its own
    std::vector<MatrixUnit> units{};  // that a user allows

    friend auto operator<=>(const VectorMachine&, const VectorMachine&) = default;
};

// A graphics processor, by its data sheet.
struct GpuMachine {
    int cores = 132, lanes = 128;                                               // multiprocessors, and the multiply-adds that one of them does in a cycle
    std::int64_t threads = 2048, registers = 65536, shared_bytes = 228 * 1024;  // of a multiprocessor
    std::int64_t block_shared_bytes = 48 * 1024, block_threads = 1024;
    double ghz = 1.98, memory_gbs = 4800;
    std::vector<MatrixUnit> units{};  // tensor cores that a user allows

    friend auto operator<=>(const GpuMachine&, const GpuMachine&) = default;
};

}  // namespace loopegg
