#include "backends/measure/known_schedules.hpp"

#include <limits>
#include <unordered_set>

#include "backends/measure/latency_store.hpp"
#include "backends/target/schedule_rules.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {

KnownSchedules known_schedules(const Graph& graph, const Target& target, std::size_t of_each, const StoreAddress& address) {
    KnownSchedules known;
    LatencyStore store(address);
    std::unordered_set<Term> seen;
    const auto rules = schedule_rules(target);
    for (const auto& [site, nest] : fused_nests(graph, {}, target)) {
        double least = std::numeric_limits<double>::infinity();
        for (const Term& t : rules->schedules(nest, of_each)) {
            const auto measured = store.find(latency_key(target, complete(t)));
            if (!measured && seen.insert(t).second) known.unmeasured.push_back(t);
            if (measured && measured->latency && measured->latency->measured && measured->latency->median_ms < least)
                least = measured->latency->median_ms, known.fastest[site] = t;
        }
    }
    return known;
}

}  // namespace loopegg
