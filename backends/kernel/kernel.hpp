// A loop nest compiled for one target: what its buffers hold, how it is launched, and its code.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/target/target.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/term/int8_scales.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// One place of a schedule that reads a weight, and the order in which its loops visit it: the element at (a0, a1, ...), each atom
// running from 0 to its extent, is the weight's logical element offset + sum of coefficients * atoms in every dimension.
struct WeightReader {
    struct Atom {
        Index index;  // over the loops' variables
        std::int64_t extent = 1;
    };
    std::vector<Atom> atoms;                              // outermost first
    std::vector<std::vector<std::int64_t>> coefficients;  // [dimension][atom]
    std::vector<std::int64_t> offsets;                    // [dimension]
    std::int64_t start = 0;                               // where this reader's part of the storage begins
    std::int64_t elements() const;
};

// One buffer of the statement as the kernel wants it. A weight without a layout is stored in the order in which the schedule visits its elements.
// Such a weight holds only the elements that are visited, so a restricted nest has small weights.
struct KernelBuffer {
    std::string name;
    BufferKind kind = BufferKind::input;
    Shape logical;
    std::vector<Blocking> blocking;
    std::int64_t elements = 0;          // floats of storage
    std::vector<WeightReader> readers;  // empty: stored as the statement says
    std::string rounding{};             // what the kernel takes weights rounded to; empty: float32
    bool signed_inputs = false;         // what multiplies int8 weights takes 128 less than the input's bytes
    std::int64_t in_word = 1;           // so many neighbours in visiting order share a 32-bit word, the first in its lowest bits
};

// Behind the words of int8 weights are, for each output channel, a factor for its sums and a whole number that is added to them; then 1 / the input's
// scale, and the input's zero (nest/term/int8_scales.hpp).
enum class Int8Tail { factors, offsets, inverse, zero };
constexpr std::int64_t int8_tail(std::int64_t channels) { return 2 * channels + 2; }

struct Launch {
    std::array<std::int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
    std::int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
    std::int64_t threads() const { return block[0] * block[1] * block[2]; }
};

struct Kernel {
    std::string symbol;                    // C name of the entry: "__tvm_ffi_NAME" on CPUs, "NAME_kernel" on GPUs
    std::vector<KernelBuffer> parameters;  // one per buffer of the statement, in its order: the output first
    std::vector<int> arguments;            // the parameters in the order that the entry takes them: TVM sorts the arguments of GPU kernels
    Launch launch;                         // of a GPU
    std::int64_t turns = 0;                // of its parallel loops on a CPU (loopeggrt_team_turns); 0: it has none, or they are not known
    std::string code;                      // an ELF object, or CUDA C
    std::uint32_t units = 0;               // matrix units that the code needs (runtime/loopegg_runtime.h)
};

// Throws UserError with the reason when the term cannot be lowered. `name` becomes part of symbols. `known` is the code of an earlier call, if it was kept.
Kernel compile_nest(const Term& nest, const Target& target, const std::string& name, std::string known = {});

// Logical row-major values to the kernel's storage and back.
std::vector<float> to_storage(const KernelBuffer& parameter, std::span<const float> logical, const Int8Scales& scales = {});
std::vector<float> from_storage(const KernelBuffer& parameter, std::span<const float> stored);

}  // namespace loopegg
