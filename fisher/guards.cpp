#include "fisher/guards.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace loopegg {
namespace {

double log_ratio(double variant, double original) { return std::log(std::max(variant, 1e-30) / std::max(original, 1e-30)); }

double mean_over(std::span<const ScoredPair> seeds, const std::function<double(const ScoredPair&)>& value) {
    double sum = 0;
    for (const ScoredPair& p : seeds) sum += value(p);
    return sum / static_cast<double>(seeds.size());
}

// The mean over layers of |log(variant's score / original's)|, the logarithms averaged over seeds first. All score the same layers.
double layer_distance(std::span<const ScoredPair> seeds) {
    std::size_t layers = seeds[0].original.raw.fisher.size();
    double sum = 0;
    for (std::size_t i = 0; i < layers; ++i)
        sum += std::abs(mean_over(seeds, [&](const ScoredPair& p) {
            const auto &a = p.original.raw.fisher, &b = p.variant.raw.fisher;
            if (a.size() != layers || b.size() != layers || a[i].first != b[i].first) return std::numeric_limits<double>::quiet_NaN();
            return log_ratio(b[i].second, a[i].second);
        }));
    return layers ? sum / static_cast<double>(layers) : std::numeric_limits<double>::quiet_NaN();
}

// How much less ReLUs tell the images apart.
double code_loss(const ScoredPair& p) { return p.original.raw.code_spread - p.variant.raw.code_spread; }

// The mean over sites of -log(share of its multiplications that is kept): for changes of several sites, the sum of what each costs alone.
double site_loss(const ScoredPair& p) {
    const auto &a = p.original.site_macs, &b = p.variant.site_macs;
    double sum = 0;
    for (const auto& [name, work] : a) {
        auto found = std::find_if(b.begin(), b.end(), [&](const auto& site) { return site.first == name; });
        if (found != b.end()) sum += std::max(0.0, std::log(work / found->second));
    }
    return a.empty() ? 0 : sum / static_cast<double>(a.size());
}

// The paper's rule: the score itself, so that anything below the original is lost and anything above it is welcome.
Kept paper(std::span<const ScoredPair> seeds) {
    double ratio = mean_over(seeds, [](const ScoredPair& p) { return fisher_total(p.variant.raw) / fisher_total(p.original.raw); });
    return {ratio, {{"fisher", ratio}}};
}

// How far a variant's Fisher Potential has moved, up or down, how much less its ReLUs tell images apart, and what is left of the work of each
// site and of the weights. The layer-wise distance goes into the evidence alone. Weights by trained networks: docs/guards.md.
Kept band(std::span<const ScoredPair> seeds) {
    constexpr double fisher_weight = 0.3, code_weight = 5, site_weight = 0.15, params_weight = 0.1;
    double fisher = mean_over(seeds, [](const ScoredPair& p) { return std::log(fisher_total(p.variant.raw) / fisher_total(p.original.raw)); });
    double layers = layer_distance(seeds), codes = mean_over(seeds, code_loss), sites = site_loss(seeds[0]);
    double params = seeds[0].variant.params / seeds[0].original.params, macs = seeds[0].variant.macs / seeds[0].original.macs;
    double lost = fisher_weight * std::abs(fisher) + code_weight * std::max(0.0, codes) + site_weight * sites + params_weight * std::max(0.0, -std::log(params));
    if (!std::isfinite(layers)) lost = layers;   // layers that cannot be compared
    return {std::exp(-lost), {{"fisher", std::exp(fisher)}, {"codes", codes}, {"sites", sites}, {"params", params}, {"macs", macs}, {"layers", layers}}};
}

}  // namespace

const std::vector<CapacityGuard>& guards() {
    static const std::vector<CapacityGuard> all{
        {"fisher-band", "Fisher Potential preserved on both sides, beside how well ReLUs tell images apart and what is left of each site's work and of the weights", {true, true, false, false}, 0.70, 0.05, band},
        {"fisher-paper", "reject what scores below the original, as the paper does", {true, false, false, false}, 1.00, 0.16, paper},
    };
    return all;
}

const CapacityGuard& find_guard(std::string_view name) {
    std::vector<std::string_view> names;
    for (const CapacityGuard& g : guards()) {
        if (g.name == name) return g;
        names.push_back(g.name);
    }
    throw UsageError(Diagnostic{fmt::format("there is no guard '{}'", name), {}, did_you_mean(name, names)});
}

}  // namespace loopegg
