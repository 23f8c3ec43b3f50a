// A unit of a machine that multiplies whole tiles of a product, as target files describe it. Rules name no unit: they ask the machine for its own.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace loopegg {

// One call of an intrinsic of LLVM on three vectors of 32-bit words: sums, rows times columns of them, row by row; `words` words of each row, row by row;
// and as many of each column. Each sum gets the products of the numbers in the words of its row and of its column. One word of one row is in all lanes.
struct UnitForm {
    std::string intrinsic;  // "llvm.aarch64.neon.smmla.v4i32.v16i8"
    std::int64_t rows = 1, columns = 1, words = 1;

    friend auto operator<=>(const UnitForm&, const UnitForm&) = default;
};

struct MatrixUnit {
    std::string instruction;              // "tdpbf16ps": what people call it
    std::string operands;                 // what operands are rounded to (nest/term/rounding.hpp); sums are float32, or 32-bit whole numbers
    std::int64_t rows = 1, columns = 1;   // of a tile of sums, at most
    std::int64_t depth = 1;               // steps of a sum that one instruction takes, at most
    std::int64_t packed = 1;              // neighbours of these steps that are in one 32-bit word
    std::int64_t tiles = 1;               // registers for tiles
    double cycles = 1;                    // between two instructions on whole tiles
    double latency = 52, load = 8;        // cycles until sums can be used again, and of loading a tile of operands
    std::vector<std::string> features{};  // that a machine needs, in LLVM's words
    std::vector<UnitForm> forms{};        // the first that cuts a tile evenly multiplies it; empty: a unit with registers for tiles
    bool signed_bytes = false;            // forms take inputs of int8 numbers as signed bytes, not as unsigned ones

    friend auto operator<=>(const MatrixUnit&, const MatrixUnit&) = default;
};

}  // namespace loopegg
