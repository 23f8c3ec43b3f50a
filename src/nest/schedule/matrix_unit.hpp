// A unit of a machine that multiplies whole tiles of a product, as target files describe it. Rules name no unit: they ask the machine for its own.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace loopegg {

struct MatrixUnit {
    std::string instruction;              // "tdpbf16ps": lowering knows how to write it
    std::string operands;                 // what operands are rounded to (nest/term/rounding.hpp); sums are float32, or 32-bit whole numbers
    std::int64_t rows = 1, columns = 1;   // of a tile of sums, at most
    std::int64_t depth = 1;               // steps of a sum that one instruction takes, at most
    std::int64_t packed = 1;              // neighbours of these steps that are in one 32-bit word
    std::int64_t tiles = 1;               // registers for tiles
    double cycles = 1;                    // between two instructions on whole tiles
    double latency = 52, load = 8;        // cycles until sums can be used again, and of loading a tile of operands
    std::vector<std::string> features{};  // that a machine needs, in LLVM's words

    friend auto operator<=>(const MatrixUnit&, const MatrixUnit&) = default;
};

}  // namespace loopegg
