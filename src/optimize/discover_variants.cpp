// Discovers variants of single sites by the rules that are for the network's class.
#include <algorithm>
#include <cmath>

#include "graph/architecture_hash.hpp"
#include "optimize/stages.hpp"
#include "rules/load.hpp"

namespace loopegg {

Discovery discover_variants(const OptimizeRequest& request, const Input& input, CapacityOracle& oracle, Progress& progress, ClassRules& rules,
                            std::string_view phase_name) {
    const RuleBook book = load_rules(rules_file(request.rules));
    const Phase* phase = book.find_phase(phase_name);
    if (!phase) return originals_only(input.sites);
    // A rule that never paid within the usual budget may pay within a larger one, so a larger budget leaves no rule out.
    const bool wide = request.budget > OptimizeRequest{}.budget;
    const Graph& read = input.as_read().graph;
    const std::string kind = class_name(request.architecture, read);
    rules = rules_for_class(book, *phase, kind, wide ? CountTable{} : known_counts(default_store(), architecture_hash(read)), shipped_keep(kind));
    if (!rules.searches) return originals_only(input.sites, "no neural rule is for this class of architecture");
    GuardQueueOptions options;
    options.budget = request.budget;
    if (!rules.asked.empty()) {  // each rule gets as many questions as it asked when it was counted, or fewer in proportion where the budget is smaller
        const double part = std::min(1.0, static_cast<double>(request.budget) / rules.asked_by_all);
        std::int64_t all = 0;
        for (const auto& [rule, questions] : rules.asked) all += options.expected[rule] = static_cast<std::int64_t>(std::ceil(part * questions));
        options.budget = std::clamp<std::int64_t>(all, 1, request.budget);
    }
    options.channels_multiple = request.channels_multiple;
    const std::string passes = request.passes.empty() ? shipped_passes(rules.name) : request.passes;
    const PassOrder order = passes.empty() ? PassOrder{} : passes_named(passes);
    Discovery found = discover(input.graph, input.sites, {rules.book, *phase, order}, oracle, options, progress);
    for (Variant& v : found.variants) v.unpaid = !searched_for(rules, v);
    return found;
}

}  // namespace loopegg
