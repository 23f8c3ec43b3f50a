// Prepares the choice of a variant for every site: gathers the options and the limits. network_search.hpp then chooses.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "optimize/families.hpp"
#include "optimize/mixture.hpp"
#include "optimize/network_search.hpp"
#include "optimize/stages.hpp"

namespace loopegg {
namespace {

double lost_by(double kept) { return std::max(0.0, -std::log(std::max(1e-9, kept))); }

// The part of the loss in a verdict that sizes do not tell.
double loss_beyond_size(const Verdict& v) {
    const auto by_size = v.evidence.find("kept_by_size");
    return by_size == v.evidence.end() ? 0 : capacity_cost(v) - lost_by(by_size->get<double>());
}

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
        const SiteOption option{a.variant, latency->median_ms, capacity_cost(a.verdict), found.variants[a.variant].parameters, {}, loss_beyond_size(a.verdict)};
        if (option.latency_ms < options[a.site][0].latency_ms) options[a.site].push_back(option);
    }
    return options;
}

// Adds variants that leave out outputs, each together with those options of its reader that do not read these outputs.
void add_unread(std::vector<std::vector<SiteOption>>& options, const Input& input, const Discovery& found, const Tuning& tuning) {
    const std::vector<std::vector<SiteOption>> readers = options;
    for (const Admission& a : found.admissions) {
        const auto& latency = tuning.best[a.variant].best.latency;
        if (!a.reader || !latency || latency->median_ms >= options[a.site][0].latency_ms) continue;
        SiteOption option{a.variant,
                          latency->median_ms,
                          capacity_cost(a.verdict),
                          found.variants[a.variant].parameters,
                          {SiteOption::Company{*a.reader, {}}},
                          loss_beyond_size(a.verdict)};
        for (std::size_t o = 0; o < readers[*a.reader].size(); ++o)
            if (leaves_unread(input.sites, found, a, readers[*a.reader][o].variant)) option.only_with.front().options.push_back(o);
        if (!option.only_with.front().options.empty()) options[a.site].push_back(std::move(option));
    }
}

// A limit on memory assumes that activations stay as they are (limits_of). So options are dropped that hold two values where there was one and thereby raise
// the peak.
void drop_larger_peaks(std::vector<std::vector<SiteOption>>& options, const Input& input, const Discovery& found) {
    const std::int64_t peak = peak_activation_bytes(input.graph);
    for (std::size_t s = 0; s < options.size(); ++s)
        std::erase_if(options[s], [&](const SiteOption& o) {
            const Variant& v = found.variants[o.variant];
            return v.two_nests() && peak_activation_bytes(with_domain(input.graph, input.sites.all[s].name, v.domain)) > peak;
        });
}

ChoiceLimits limits_of(const OptimizeRequest& request, const Input& input) {
    ChoiceLimits limits;
    std::int64_t most = request.max_parameters;
    if (std::isfinite(request.max_memory_mb)) {  // restricted sites still write whole outputs: activations stay, and weights get fewer
        const double left = request.max_memory_mb * 1e6 - static_cast<double>(peak_activation_bytes(input.graph));
        if (left < 0)
            throw UserError(fmt::format("activations alone need {:.2f} MB: more than --max-memory {:.2f}",
                                        static_cast<double>(peak_activation_bytes(input.graph)) / 1e6, request.max_memory_mb));
        most = std::min(most, static_cast<std::int64_t>(left / 4));
    }
    if (most != limits.parameters) {
        // The limit is for the whole network. Parameters outside of sites (batch norms) stay, whatever is chosen.
        std::int64_t in_sites = 0;
        for (const Site& s : input.sites.all) in_sites += s.parameters;
        limits.parameters = most - (parameters(input.graph) - in_sites);
    }
    limits.latency_ms = request.max_latency_ms;
    return limits;
}

}  // namespace

double kept_share(const Verdict& v) {
    return v.evidence.is_object() && v.evidence.contains("kept") && v.evidence["kept"].is_number() ? v.evidence["kept"].get<double>() : 1.0;
}

std::vector<std::size_t> original_variants(const Sites& sites) {
    std::vector<std::size_t> variant;
    for (const Site& s : sites.all) variant.push_back(s.kind);
    return variant;
}

std::vector<std::size_t> returned_variants(const Input& input, const Selection& selection, const Confirmed& confirmed) {
    return confirmed.keep_original ? original_variants(input.sites) : selection.chosen.variant;
}

Graph network_of(const Graph& original, const Sites& sites, const Discovery& found, const std::vector<std::size_t>& variant) {
    std::vector<std::pair<std::string, Domain>> domains;
    for (std::size_t s = 0; s < sites.all.size(); ++s)
        if (const Domain& domain = found.variants[variant[s]].domain; !domain.whole()) domains.emplace_back(sites.all[s].name, domain);
    return with_domains(original, domains);
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

double capacity_cost(const Verdict& v) { return lost_by(kept_share(v)); }
double Chosen::lost() const { return capacity_cost(verdict); }

Selection select(const OptimizeRequest& request, const Input& input, const Discovery& found, const Tuning& tuning, CapacityOracle& oracle, Progress& progress) {
    Selection selection;
    selection.options = options_of(input, found, tuning);
    if (std::isfinite(request.max_memory_mb)) drop_larger_peaks(selection.options, input, found);
    if (request.objective == "memory") keep_smallest(selection.options);
    add_unread(selection.options, input, found, tuning);
    ChoiceLimits limits = limits_of(request, input);
    limits.at_most = mixture_limits(families_of(input.graph, input.sites), selection.options, found.variants);
    if (ChooseResult any = choose(selection.options, limits); !any.choice) throw UserError(any.why);
    search_networks(selection, limits, input, found, oracle, progress);
    return selection;
}

}  // namespace loopegg
