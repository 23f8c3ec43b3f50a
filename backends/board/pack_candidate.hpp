// A candidate as it goes to a board: its machine code, its operands, and the output that it must give.
#pragma once
#include <string>
#include <vector>

#include "backends/board/board_message.hpp"
#include "backends/kernel/kernel.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

struct TrialLimits {
    int samples = 15;
    double seconds = 60;
    long memory_mb = 8192;  // of address space
};

// The request that board_trial.hpp describes. `operands` and `wanted` are logical and row-major. Elements of the output's storage that hold no logical
// element are not compared.
BoardMessage pack_candidate(const Kernel& kernel, const Statement& statement, const std::vector<std::vector<float>>& operands, const std::vector<float>& wanted,
                            const TrialLimits& limits);

}  // namespace loopegg
