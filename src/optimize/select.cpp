// Chooses a variant for every site, and asks the guard about the whole: the verdicts of single sites do not add up to the network's.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "nest/domain.hpp"
#include "nest/with_domain.hpp"
#include "optimize/families.hpp"
#include "optimize/mixture.hpp"
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
        if (!a.verdict.allowed || !latency || a.reader) continue;
        const SiteOption option{a.variant, latency->median_ms, capacity_cost(a.verdict), found.variants[a.variant].parameters};
        if (option.latency_ms < options[a.site][0].latency_ms) options[a.site].push_back(option);
    }
    return options;
}

// Variants that leave out what their reader does not read, each together with the reader's options of which that is true.
void add_unread(std::vector<std::vector<SiteOption>>& options, const Input& input, const Discovery& found, const Tuning& tuning) {
    const std::vector<std::vector<SiteOption>> readers = options;
    for (const Admission& a : found.admissions) {
        const auto& latency = tuning.best[a.variant].best.latency;
        if (!a.reader || !latency || latency->median_ms >= options[a.site][0].latency_ms) continue;
        SiteOption option{a.variant, latency->median_ms, capacity_cost(a.verdict), found.variants[a.variant].parameters, SiteOption::Company{*a.reader, {}}};
        for (std::size_t o = 0; o < readers[*a.reader].size(); ++o)
            if (leaves_unread(input.sites, found, a, readers[*a.reader][o].variant)) option.only_with->options.push_back(o);
        if (!option.only_with->options.empty()) options[a.site].push_back(std::move(option));
    }
}

// A limit on memory counts on activations that stay as they are (limits_of): what holds two values where there was one may not raise their peak.
void drop_larger_peaks(std::vector<std::vector<SiteOption>>& options, const Input& input, const Discovery& found) {
    const std::int64_t peak = peak_activation_bytes(input.graph);
    for (std::size_t s = 0; s < options.size(); ++s)
        std::erase_if(options[s], [&](const SiteOption& o) {
            const Variant& v = found.variants[o.variant];
            return v.two_nests() && peak_activation_bytes(with_domain(input.graph, input.sites.all[s].name, v.domain)) > peak;
        });
}

class Selector {
public:
    Selector(const Input& input, const Discovery& found, CapacityOracle& oracle, Selection& selection)
        : input_(input), found_(found), oracle_(oracle), selection_(selection) {}

    // The networks of several choices, with the guard's verdicts on them.
    std::vector<Chosen> ask(std::vector<NetworkChoice> choices) {
        std::vector<Chosen> out;
        std::vector<Graph> graphs;
        for (NetworkChoice& choice : choices) {
            Chosen c{std::move(choice), {}, {}, {true, "the original network", {{"kept", 1.0}}}};
            for (std::size_t s = 0; s < selection_.options.size(); ++s) c.variant.push_back(selection_.options[s][c.choice.picked[s]].variant);
            c.graph = network_of(input_.graph, input_.sites, found_, c.variant);
            if (!original(c)) graphs.push_back(c.graph);
            out.push_back(std::move(c));
        }
        const std::vector<Verdict> verdicts = oracle_.judge(input_.graph, graphs);
        auto next = verdicts.begin();
        for (Chosen& c : out) {
            if (!original(c)) c.verdict = *next++;
            selection_.backed_off += !c.verdict.allowed;
        }
        return out;
    }

private:
    bool original(const Chosen& c) const { return c.variant == original_variants(input_.sites); }

    const Input& input_;
    const Discovery& found_;
    CapacityOracle& oracle_;
    Selection& selection_;
};

// Least squares through the origin: what is lost on the whole against the sum of what the sites lose by their shares.
double calibrate(const std::vector<Chosen>& judged) {
    double xy = 0, xx = 0;
    for (const Chosen& c : judged) xy += c.choice.capacity_cost * c.lost(), xx += c.choice.capacity_cost * c.choice.capacity_cost;
    return xx > 0 ? xy / xx : 1;
}

ChoiceLimits limits_of(const OptimizeRequest& request, const Input& input) {
    ChoiceLimits limits;
    std::int64_t most = request.max_parameters;
    if (std::isfinite(request.max_memory_mb)) {   // restricted sites still write whole outputs: activations stay, weights give way
        const double left = request.max_memory_mb * 1e6 - static_cast<double>(peak_activation_bytes(input.graph));
        if (left < 0) throw UserError(fmt::format("activations alone need {:.2f} MB: more than --max-memory {:.2f}", static_cast<double>(peak_activation_bytes(input.graph)) / 1e6, request.max_memory_mb));
        most = std::min(most, static_cast<std::int64_t>(left / 4));
    }
    if (most != limits.parameters) {
        // The limit is for the whole network; what is in no site (batch norms) stays whatever is chosen.
        std::int64_t in_sites = 0;
        for (const Site& s : input.sites.all) in_sites += s.parameters;
        limits.parameters = most - (parameters(input.graph) - in_sites);
    }
    limits.latency_ms = request.max_latency_ms;
    return limits;
}

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

bool leaves_unread(const Sites& sites, const Discovery& found, const Admission& a, std::size_t variant) {
    const auto axes = [&](std::size_t site) { return graph_axes(statement_of(sites.all[site].statement)); };
    return reads_only_computed(found.variants[a.variant].domain, axes(a.site), found.variants[variant].domain, axes(*a.reader));
}

const Admission* admission_of(const Sites& sites, const Discovery& found, const std::vector<std::size_t>& variant, std::size_t site) {
    const Admission* by_guard = nullptr;
    for (const Admission& a : found.admissions) {
        if (a.site != site || a.variant != variant[site]) continue;
        if (a.reader && leaves_unread(sites, found, a, variant[*a.reader])) return &a;
        if (!a.reader) by_guard = &a;
    }
    return by_guard;
}

std::string sequence_name(const Sites& sites, const Discovery& found, const std::vector<std::size_t>& variant, std::size_t site) {
    const Admission* a = admission_of(sites, found, variant, site);
    return a && a->reader ? "propagate" : found.variants[variant[site]].effect;
}

double capacity_cost(const Verdict& v) { return std::max(0.0, -std::log(std::max(1e-9, kept_share(v)))); }
double Chosen::lost() const { return capacity_cost(verdict); }

Selection select(const OptimizeRequest& request, const Input& input, const Discovery& found, const Tuning& tuning, CapacityOracle& oracle, Progress& progress) {
    Selection selection;
    selection.options = options_of(input, found, tuning);
    if (std::isfinite(request.max_memory_mb)) drop_larger_peaks(selection.options, input, found);
    if (request.objective == "memory") keep_smallest(selection.options);
    add_unread(selection.options, input, found, tuning);
    ChoiceLimits limits = limits_of(request, input);
    limits.few = mixture_limits(families_of(input.graph, input.sites), selection.options, found.variants);
    if (ChooseResult any = choose(selection.options, limits); !any.choice) throw UserError(any.why);
    Selector selector(input, found, oracle, selection);

    progress.advance(0, "judging the front as whole networks");
    selection.front = selector.ask(pareto_front(selection.options, limits));
    selection.calibration = calibrate(selection.front);
    auto faster = [](const Chosen& a, const Chosen& b) { return a.choice.latency_ms < b.choice.latency_ms; };
    std::optional<Chosen> best;
    for (const Chosen& c : selection.front)
        if (c.verdict.allowed && (!best || faster(c, *best))) best = c;
    if (!best) throw UserError("the guard refuses every network that meets the limits; the one that keeps most: " + selection.front.front().verdict.why);

    // The sum of shares is a budget whose true price only the guard on the whole knows, and a little more of it may buy a quite different network: between the
    // best allowed point and the next one, which is refused, several budgets at once, then some between the largest that it allows and the one above.
    double low = best->choice.capacity_cost, high = low;
    for (const Chosen& c : selection.front)
        if (faster(c, *best)) { high = c.choice.capacity_cost; break; }
    for (int points : {6, 4, 2}) {
        if (high <= low) break;
        progress.advance(0, fmt::format("{} capacity budgets between {:.3f} and {:.3f}", points, low, high));
        std::vector<double> budgets{low};
        std::vector<NetworkChoice> choices;
        for (int i = 1; i <= points; ++i) {
            limits.capacity = low + (high - low) * i / (points + 1);
            if (ChooseResult r = choose(selection.options, limits); r.choice) budgets.push_back(limits.capacity), choices.push_back(std::move(*r.choice));
        }
        budgets.push_back(high);
        std::vector<Chosen> judged = selector.ask(std::move(choices));
        std::size_t allowed = judged.size();   // of budgets, the first of which is
        while (allowed > 0 && !judged[allowed - 1].verdict.allowed) --allowed;
        low = budgets[allowed], high = budgets[allowed + 1];
        if (allowed > 0 && faster(judged[allowed - 1], *best)) best = std::move(judged[allowed - 1]);
    }
    selection.chosen = std::move(*best);
    return selection;
}

}  // namespace loopegg
