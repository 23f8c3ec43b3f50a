// The out folder: the chosen network as a model, its weights, how it came about, and the evidence.
#include <fmt/format.h>

#include "base/files.hpp"
#include "graph/carry_weights.hpp"
#include "graph/load.hpp"
#include "optimize/capacity_desk.hpp"
#include "optimize/named_sequences.hpp"
#include "optimize/stages.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

json steps_json(const Variant& v) {
    json steps = json::array();
    for (const SequenceStep& s : v.steps) {
        json with = json::object();
        for (const auto& [name, value] : s.with) with[name] = value;
        steps.push_back({{"rule", s.rule}, {"kind", s.neural ? "neural" : "exact"}, {"with", with}, {"before", to_string(s.before)}, {"after", to_string(s.after)}});
    }
    return steps;
}

json sequences_json(const Input& input, const Discovery& found, const std::vector<std::size_t>& variant) {
    json sites = json::array();
    for (std::size_t s = 0; s < input.sites.all.size(); ++s) {
        const Variant& v = found.variants[variant[s]];
        std::string key;
        for (const SequenceStep& step : v.steps) key += (key.empty() ? "" : " ") + step.rule;
        sites.push_back({{"name", input.sites.all[s].name}, {"sequence", v.effect}, {"key", key}, {"effect", domain_text(v.domain)}, {"steps", steps_json(v)},
                         {"original", to_string(input.sites.kinds[input.sites.all[s].kind].nest)}, {"chosen", to_string(v.nest)}, {"proofs", v.proofs}});
    }
    return {{"sites", sites}};
}

}  // namespace

void write_out(const OptimizeRequest& request, const Input& input, const Discovery& found, const Selection& selection, const Confirmed& confirmed, Oracle& oracle) {
    const std::vector<std::size_t> variant = returned_variants(input, selection, confirmed);
    const Graph& graph = confirmed.keep_original ? input.graph : selection.chosen.graph;
    save_model(graph, carry_weights(input.graph, input.weights, graph, request.seed), request.out / "model.json");
    write_file(request.out / "sequences.json", sequences_json(input, found, variant).dump(1));
    std::string lines;
    for (const json& e : oracle.evidence()) lines += e.dump() + "\n";
    write_file(request.out / "evidence.jsonl", lines);
}

}  // namespace loopegg
