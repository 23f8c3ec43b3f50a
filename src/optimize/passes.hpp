// In which order the rules of a phase are applied: all at once, or one set after another.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egraph/runner.hpp"

namespace loopegg {

// together-K: all rules in each of K rounds. in-turn-K: K rounds of one set after another.
struct PassOrder {
    bool by_set = false;      // one set after another
    std::int64_t rounds = 0;  // 0: as many as the phase's limit allows
    friend bool operator==(const PassOrder&, const PassOrder&) = default;
};
std::optional<PassOrder> pass_order(std::string_view text);  // "together-6", "in-turn-2"; none for anything else

// Runs the rules, which are given by set in the order of the phase. together-K: every rule in each of K iterations. in-turn-K: K rounds, in each of which
// every set has one iteration by itself, in order. An `order` without rounds takes the number of rounds from the limits. The report has one entry per
// iteration.
RunReport run_passes(EGraph& graph, const std::vector<std::vector<Rewrite>>& sets, const PassOrder& order, const RunOptions& options);

}  // namespace loopegg
