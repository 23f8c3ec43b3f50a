// The first stage: grows the e-graph of all nests of a network with exact and neural rules, and asks the guard about every proposal.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "optimize/guard_queue.hpp"
#include "optimize/passes.hpp"
#include "optimize/sites.hpp"
#include "optimize/variant.hpp"

namespace loopegg {

struct Discovery {
    std::vector<Variant> variants;      // the first Sites::kinds.size() are the originals
    std::vector<Admission> admissions;  // every verdict on a (site, variant), allowed or not
    std::int64_t configurations = 0, rejected = 0, refused = 0;
    std::map<std::string, std::size_t> rules_fired;   // every rule of the phase, also those that never fired
    std::map<std::string, std::int64_t> rules_asked;  // configurations that the guard was asked about, by the rule that proposed them
    std::string stop;                                 // why the growth of the e-graph ended
    std::size_t nodes = 0, classes = 0;
};

// The discovery of a rule file without a discover phase: every nest as it is.
Discovery originals_only(const Sites& sites, const std::string& why = "no discover phase");

// The rules and limits of a phase, and in which order its sets are applied.
struct PhaseRules {
    const RuleBook& book;
    const Phase& phase;
    PassOrder passes{};
};

// Throws what the oracle throws.
Discovery discover(const Graph& graph, const Sites& sites, const PhaseRules& with, CapacityOracle& oracle, const GuardQueueOptions& options,
                   Progress& progress);

}  // namespace loopegg
