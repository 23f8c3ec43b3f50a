// Counts what later runs of the same class can learn from a run: which rules did something, which sequences were returned, what each round of tuning gained.
#include <algorithm>

#include "base/error.hpp"
#include "graph/architecture.hpp"
#include "graph/architecture_hash.hpp"
#include "optimize/paid_sequences.hpp"
#include "optimize/stages.hpp"

namespace loopegg {
namespace {

// The sum of the best times of the sites of the returned network and of the original, after each round of tuning.
std::vector<double> after_rounds(const Sites& sites, const Tuning& tuning, const std::vector<std::size_t>& variant) {
    std::vector<const std::vector<double>*> nests;
    std::size_t rounds = 0;
    for (std::size_t s = 0; s < sites.all.size(); ++s)
        for (std::size_t v : {sites.all[s].kind, variant[s]})
            if (const std::vector<double>& ms = tuning.best[v].after_round; !ms.empty()) nests.push_back(&ms), rounds = std::max(rounds, ms.size());
    std::vector<double> after(rounds, 0.0);
    for (const std::vector<double>* ms : nests)
        for (std::size_t r = 0; r < rounds; ++r) after[r] += (*ms)[std::min(r, ms->size() - 1)];
    return after;
}

}  // namespace

nlohmann::json count_run(const std::optional<StoreAddress>& store, const ClassRules& rules, const Input& input, const Discovery& found, const Tuning& tuning,
                         const std::vector<std::size_t>& variant) {
    const Graph& read = input.as_read().graph;
    const Hash128 network = architecture_hash(read);
    NetworkCounts run{.name = read.name, .rules = {}};
    const auto count_of = [&](const std::string& name) -> RuleCount& {
        const Rule* rule = rules.book.find_rule(name);
        require(rule, "a rule that fired is in the book");
        return run.rules[count_key(*rule)];
    };
    for (const auto& [rule, fired] : found.rules_fired) count_of(rule).fired = static_cast<std::int64_t>(fired);
    for (const auto& [rule, asked] : found.rules_asked) count_of(rule).asked = asked;
    for (std::size_t v : variant) {
        for (const DerivationStep& step : found.variants[v].steps) ++count_of(step.rule).paid;
        if (const std::string sequence = neural_sequence(rules.book, found.variants[v]); !sequence.empty()) run.sequences.insert(sequence);
    }
    if (store && rules.pruned.empty() && !found.rules_fired.empty()) store_counts(*store, to_string(classify_architecture(read).kind), network, run);
    nlohmann::json j = to_json(run);
    j["architecture"] = network.hex();
    j["after_round_ms"] = after_rounds(input.sites, tuning, variant);
    return j;
}

}  // namespace loopegg
