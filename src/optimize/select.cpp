// Chooses a variant for every site, and asks the guard about the whole: the verdicts of single sites do not add up to the network's.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/flops.hpp"
#include "optimize/stages.hpp"

namespace loopegg {
namespace {

std::vector<std::vector<SiteOption>> options_of(const Input& input, const Discovery& found, const Tuning& tuning) {
    std::vector<std::vector<SiteOption>> options(input.sites.all.size());
    for (std::size_t s = 0; s < options.size(); ++s) {
        const std::size_t original = input.sites.all[s].kind;
        const auto& latency = tuning.best[original].best.latency;
        options[s].push_back({original, latency ? latency->median_ms : 0.0, 0.0, found.variants[original].parameters});
    }
    for (const Admission& a : found.admissions) {
        const auto& latency = tuning.best[a.variant].best.latency;
        if (!a.verdict.allowed || !latency) continue;
        const SiteOption option{a.variant, latency->median_ms, std::max(0.0, 1 - kept_share(a.verdict)), found.variants[a.variant].parameters};
        if (option.latency_ms < options[a.site][0].latency_ms) options[a.site].push_back(option);
    }
    return options;
}

class Selector {
public:
    Selector(const Input& input, const Discovery& found, CapacityOracle& oracle, Selection& selection)
        : input_(input), found_(found), oracle_(oracle), selection_(selection) {}

    // The network of a choice, with the guard's verdict on it.
    Chosen ask(NetworkChoice choice) {
        Chosen c{std::move(choice), {}, {}, {}};
        for (std::size_t s = 0; s < selection_.options.size(); ++s) c.variant.push_back(selection_.options[s][c.choice.picked[s]].variant);
        c.graph = network_of(input_.graph, input_.sites, found_, c.variant);
        if (c.variant == original_variants(input_.sites)) c.verdict = {true, "the original network", {{"kept", 1.0}}};
        else c.verdict = oracle_.judge(input_.graph, std::span(&c.graph, 1)).at(0);
        return c;
    }

private:
    const Input& input_;
    const Discovery& found_;
    CapacityOracle& oracle_;
    Selection& selection_;
};

}  // namespace

double kept_share(const Verdict& v) { return v.evidence.is_object() && v.evidence.contains("kept") && v.evidence["kept"].is_number() ? v.evidence["kept"].get<double>() : 1.0; }

std::vector<std::size_t> original_variants(const Sites& sites) {
    std::vector<std::size_t> variant;
    for (const Site& s : sites.all) variant.push_back(s.kind);
    return variant;
}

std::vector<std::size_t> returned_variants(const Input& input, const Selection& selection, const Confirmed& confirmed) {
    return confirmed.keep_original ? original_variants(input.sites) : selection.chosen.variant;
}

Graph network_of(const Graph& original, const Sites& sites, const Discovery& found, const std::vector<std::size_t>& variant) {
    Graph graph = original;
    for (std::size_t s = 0; s < sites.all.size(); ++s)
        if (!found.variants[variant[s]].domain.whole()) graph = with_domain(graph, sites.all[s].name, found.variants[variant[s]].domain);
    return graph;
}

Selection select(const OptimizeRequest& request, const Input& input, const Discovery& found, const Tuning& tuning, CapacityOracle& oracle, Progress& progress) {
    Selection selection;
    selection.options = options_of(input, found, tuning);
    ChoiceLimits limits;
    if (request.max_parameters != limits.parameters) {
        // The limit is for the whole network; what is in no site (batch norms) stays whatever is chosen.
        std::int64_t in_sites = 0;
        for (const Site& s : input.sites.all) in_sites += s.parameters;
        limits.parameters = request.max_parameters - (parameters(input.graph) - in_sites);
    }
    limits.latency_ms = request.max_latency_ms;
    Selector selector(input, found, oracle, selection);

    ChooseResult fastest = choose(selection.options, limits);
    if (!fastest.choice) throw UserError(fastest.why);
    selection.chosen = selector.ask(*fastest.choice);
    if (!selection.chosen.verdict.allowed) {
        // The sum of single losses is a budget whose true price only the guard on the whole knows: halve in on the largest it allows.
        double low = 0, high = fastest.choice->capacity_cost;
        std::optional<Chosen> best;
        for (int i = 0; i < 7; ++i) {
            ++selection.backed_off;
            progress.advance(i + 1, fmt::format("capacity budget between {:.3f} and {:.3f}", low, high));
            limits.capacity = (low + high) / 2;
            ChooseResult r = choose(selection.options, limits);
            if (!r.choice) { low = limits.capacity; continue; }
            Chosen c = selector.ask(*r.choice);
            if (c.verdict.allowed) {
                low = limits.capacity;
                if (!best || c.choice.latency_ms < best->choice.latency_ms) best = std::move(c);
            } else {
                high = limits.capacity;
            }
        }
        if (!best) {
            limits.capacity = 0;
            ChooseResult none = choose(selection.options, limits);
            if (!none.choice) throw UserError("the guard refuses every network that meets the limits; " + none.why);
            best = selector.ask(*none.choice);
        }
        selection.chosen = std::move(*best);
    }
    ChoiceLimits open = limits;
    open.capacity = std::numeric_limits<double>::infinity();
    selection.front = pareto_front(selection.options, open);
    return selection;
}

}  // namespace loopegg
