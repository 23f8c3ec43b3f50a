// In which order the rules of a phase are applied: all at once, or one set after another.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/runner.hpp"

namespace loopegg {

// AS-k: all rules in each of k rounds. PO-k: k rounds of one set after another.
struct PassOrder {
    bool by_set = false;      // PO
    std::int64_t rounds = 0;  // 0: as many as the phase's limit allows
    friend bool operator==(const PassOrder&, const PassOrder&) = default;
};
std::optional<PassOrder> pass_order(std::string_view text);  // "AS-6", "PO-2"; none for anything else

// Runs the rules, which are given by set in the order of the phase. AS-k: every rule in each of k iterations. PO-k: k rounds, in each of which every set
// has one iteration by itself, in order. An `order` without rounds takes the number of rounds from the limits. The report has one entry per iteration.
RunReport run_passes(EGraph& graph, const std::vector<std::vector<Rewrite>>& sets, const PassOrder& order, const RunOptions& options);

}  // namespace loopegg
