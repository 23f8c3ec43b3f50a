#include "fisher/guards.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace loopegg {
namespace {

// The mean over layers of |log(variant's score / original's)|. Both score the same layers.
double layer_distance(const ScoredPair& p) {
    const auto &a = p.original.raw.fisher, &b = p.variant.raw.fisher;
    if (a.empty() || a.size() != b.size()) return std::numeric_limits<double>::infinity();
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].first != b[i].first) return std::numeric_limits<double>::infinity();
        sum += std::abs(std::log(std::max(b[i].second, 1e-30) / std::max(a[i].second, 1e-30)));
    }
    return sum / static_cast<double>(a.size());
}

// The paper's rule: the score itself, so that anything below the original is lost and anything above it is welcome.
Kept paper(const ScoredPair& p) {
    double ratio = fisher_total(p.variant.raw) / fisher_total(p.original.raw);
    return {ratio, {{"fisher", ratio}}};
}

// How far a variant's Fisher Potential has moved, up or down, as a whole and layer by layer (a collapsed layer and an inflated one do not
// cancel out), and what share of the work is left. The weights were chosen on trained networks: docs/guards.md.
Kept band(const ScoredPair& p) {
    constexpr double whole_weight = 0.5, layer_weight = 0.5, macs_weight = 0.15;
    double fisher = fisher_total(p.variant.raw) / fisher_total(p.original.raw);
    double macs = p.variant.macs / p.original.macs, layers = layer_distance(p);
    double lost = whole_weight * std::abs(std::log(fisher)) + layer_weight * layers + macs_weight * std::max(0.0, -std::log(macs));
    return {std::exp(-lost), {{"fisher", fisher}, {"layers", layers}, {"macs", macs}}};
}

}  // namespace

const std::vector<CapacityGuard>& guards() {
    static const std::vector<CapacityGuard> all{
        {"fisher-band", "Fisher Potential preserved on both sides, as a whole and by layer, beside the share of MACs kept", {true, false, false, false}, 0.70, 0.08, band},
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
