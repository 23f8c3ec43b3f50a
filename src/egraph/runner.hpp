// Running rules over an e-graph until nothing changes or a limit is met: find all matches, apply them all, rebuild, and again.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "egraph/apply.hpp"
#include "egraph/compiled.hpp"
#include "egraph/egraph.hpp"
#include "egraph/search.hpp"

namespace loopegg {

enum class Scheduler {
    simple,   // every rule, every iteration
    backoff,  // a rule with more fresh matches than its limit rests for a while, and its limit doubles
};

// Search and apply keep within these limits inside an iteration too.
struct Limits {
    std::size_t iterations = 30;
    std::size_t nodes = 10'000'000;
    double seconds = 1e9;
    std::size_t bytes = ~std::size_t{0};  // e-graph and matches
};

enum class StopReason { saturated, iterations, nodes, seconds, bytes, cancelled };
std::string_view name_of(StopReason reason);

struct RuleReport {
    std::string rule;
    std::size_t matches = 0;       // that were found; with incremental search, the fresh ones
    std::size_t applications = 0;  // that changed the e-graph
    bool banned = false;           // rested, or was sent to rest, in this iteration
};

struct IterationReport {
    std::size_t nodes = 0, classes = 0, edges = 0;  // after the iteration
    double seconds = 0, search_seconds = 0, apply_seconds = 0, rebuild_seconds = 0;
    std::vector<RuleReport> rules;
};

struct RunReport {
    StopReason stop = StopReason::iterations;
    double seconds = 0;
    std::size_t peak_bytes = 0;  // of the e-graph and the matches
    std::vector<IterationReport> iterations;
};

struct RunOptions {
    Limits limits{};
    Scheduler scheduler = Scheduler::simple;
    std::size_t match_limit = 1000;  // backoff: fresh matches that a rule may have in one iteration
    std::size_t ban_length = 5;      // backoff: iterations of the first rest
    SearchMode search = SearchMode::incremental;
    std::function<bool(const IterationReport&)> after_iteration{};  // false: stop
};

// A Runner keeps from one run to the next what each rule has already seen.
class Runner {
public:
    Runner(EGraph& graph, std::vector<Rewrite> rules);
    RunReport run(const RunOptions& options = {});
    const std::vector<std::shared_ptr<const CompiledRewrite>>& rules() const { return rules_; }

private:
    struct RuleState {
        std::uint32_t seen = 0;  // the epoch up to which the rule's matches were found
        std::size_t times_banned = 0, banned_until = 0;
        Unfinished unfinished;  // the search that sent the rule to rest
    };

    EGraph& graph_;
    SearchIndex index_;
    std::vector<std::shared_ptr<const CompiledRewrite>> rules_;
    std::vector<RuleState> states_;
    std::uint64_t pops_ = 0;
};

}  // namespace loopegg
