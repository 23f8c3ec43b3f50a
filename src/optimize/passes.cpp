#include "optimize/passes.hpp"

#include <algorithm>
#include <chrono>
#include <deque>

namespace loopegg {
namespace {

// Runs one set after another. Each set has a runner of its own, which remembers what it has seen.
RunReport one_set_after_another(EGraph& graph, const std::vector<std::vector<Rewrite>>& sets, std::size_t rounds, RunOptions options) {
    const auto start = std::chrono::steady_clock::now();
    const double seconds = options.limits.seconds;
    std::deque<Runner> runners;  // a deque, because a runner must not be moved
    for (const auto& set : sets) runners.emplace_back(graph, set);
    RunReport all;
    for (std::size_t round = 0; round < rounds; ++round) {
        bool changed = false;
        for (Runner& runner : runners) {
            options.limits.iterations = 1;
            options.limits.seconds = std::max(0.0, seconds - all.seconds);
            const RunReport one = runner.run(options);
            all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            all.peak_bytes = std::max(all.peak_bytes, one.peak_bytes);
            all.iterations.insert(all.iterations.end(), one.iterations.begin(), one.iterations.end());
            changed = changed || one.stop != StopReason::saturated;
            if (one.stop != StopReason::saturated && one.stop != StopReason::iterations) {
                all.stop = one.stop;
                return all;
            }
        }
        if (!changed) {
            all.stop = StopReason::saturated;
            return all;
        }
    }
    all.stop = StopReason::iterations;
    return all;
}

}  // namespace

std::optional<PassOrder> pass_order(std::string_view text) {
    for (const auto& [word, by_set] : {std::pair<std::string_view, bool>{"together-", false}, {"in-turn-", true}}) {
        if (!text.starts_with(word)) continue;
        const auto rounds = integer_of(Symbol(std::string(text.substr(word.size()))));
        return rounds && *rounds > 0 ? std::optional(PassOrder{by_set, *rounds}) : std::nullopt;
    }
    return {};
}

RunReport run_passes(EGraph& graph, const std::vector<std::vector<Rewrite>>& sets, const PassOrder& order, const RunOptions& options) {
    RunOptions limited = options;
    if (order.rounds > 0) limited.limits.iterations = static_cast<std::size_t>(order.rounds);
    if (order.by_set) return one_set_after_another(graph, sets, limited.limits.iterations, limited);
    std::vector<Rewrite> all;
    for (const auto& set : sets) all.insert(all.end(), set.begin(), set.end());
    return Runner(graph, all).run(limited);
}

}  // namespace loopegg
