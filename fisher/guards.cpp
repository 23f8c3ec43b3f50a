#include "fisher/guards.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

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

// The mean over layers of |log(variant's score / original's score)|, where the logarithms are averaged over seeds first. All seeds score the same layers.
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

// How much worse the ReLUs of the variant tell the images apart.
double code_loss(const ScoredPair& p) { return p.original.raw.code_spread - p.variant.raw.code_spread; }

// How much less work there is, as logarithms: the root mean square over stages (sites whose outputs have as many pixels), and the mean over sites, both
// weighted by their parts of the original's work. To cut down one stage costs more than to cut all stages a little. A site of which hardly anything is left
// costs something even where its neighbours are whole.
struct WorkLoss {
    double stages = 0, sites = 0;
};
WorkLoss work_loss(const MeasureInput& original, const MeasureInput& variant) {
    // A site of which nothing is left counts as 1/64, because the network still works.
    const auto lost = [](double before, double after) { return std::max(0.0, std::log(before / std::max(after, before / 64))); };
    struct Work {
        double before = 0, after = 0;
    };
    std::map<std::int64_t, Work> stages;
    double whole = 0, squares = 0, sum = 0;
    for (const SiteWork& site : original.sites) {
        auto found = std::find_if(variant.sites.begin(), variant.sites.end(), [&](const SiteWork& s) { return s.name == site.name; });
        const double after = found != variant.sites.end() ? found->macs : 0;  // a dropped branch has no sites any more
        Work& stage = stages[site.places];
        stage.before += site.macs, stage.after += after;
        whole += site.macs, sum += site.macs * lost(site.macs, after);
    }
    for (const auto& [places, stage] : stages) squares += stage.before / whole * lost(stage.before, stage.after) * lost(stage.before, stage.after);
    return {std::sqrt(squares), sum / whole};
}

// The paper's rule: the ratio of scores itself, so that any score below the original's is a loss and any score above it is allowed.
Kept paper(std::span<const ScoredPair> seeds) {
    double ratio = mean_over(seeds, [](const ScoredPair& p) { return fisher_total(p.variant.raw) / fisher_total(p.original.raw); });
    return {ratio, {{"fisher", ratio}}};
}

double size_loss(const MeasureInput& original, const MeasureInput& variant, const WorkLoss& work) {
    constexpr double stage_weight = 0.25, site_weight = 0.1, parameter_weight = 0.1;
    return stage_weight * work.stages + site_weight * work.sites + parameter_weight * std::max(0.0, std::log(original.params / variant.params));
}

double band_by_size(const MeasureInput& original, const MeasureInput& variant) { return std::exp(-size_loss(original, variant, work_loss(original, variant))); }

// The loss comes from how far the variant's Fisher Potential has moved, up or down, how much worse its ReLUs tell images apart, and what is left of the work
// of stages and sites and of the parameters. The layer-wise distance and the multiplications of the whole network go into the evidence alone. The weights
// come from trained networks: docs/explanation/guards.md.
Kept band(std::span<const ScoredPair> seeds) {
    constexpr double fisher_weight = 0.15, code_weight = 6;
    const MeasureInput &original = seeds[0].original, &variant = seeds[0].variant;
    double fisher = mean_over(seeds, [](const ScoredPair& p) { return std::log(fisher_total(p.variant.raw) / fisher_total(p.original.raw)); });
    double layers = layer_distance(seeds), codes = mean_over(seeds, code_loss);
    const WorkLoss work = work_loss(original, variant);
    double lost = fisher_weight * std::abs(fisher) + code_weight * std::max(0.0, codes) + size_loss(original, variant, work);
    if (!std::isfinite(layers)) lost = layers;  // the layers cannot be compared
    return {std::exp(-lost),
            {{"fisher", std::exp(fisher)},
             {"codes", codes},
             {"stages", work.stages},
             {"sites", work.sites},
             {"macs", variant.macs / original.macs},
             {"params", variant.params / original.params},
             {"layers", layers}}};
}

// The loss that is expected after training. Fisher Potential is computed and goes into the evidence, but the fit gives it no weight.
Kept by_expected_loss(std::span<const ScoredPair> seeds) {
    const LossParts parts = loss_parts(seeds[0].original, seeds[0].variant);
    const ExpectedLoss loss = expected_loss(seeds[0].original, parts);
    double fisher = mean_over(seeds, [](const ScoredPair& p) { return std::log(fisher_total(p.variant.raw) / fisher_total(p.original.raw)); });
    // A network that has no gradients at all is never admitted, however large it is.
    return {std::isfinite(fisher) ? kept_at_loss(loss.points) : std::numeric_limits<double>::quiet_NaN(),
            {{"work", parts.work},
             {"depth", parts.depth},
             {"widths", parts.widths},
             {"mixing", parts.mixing},
             {"view", parts.view},
             {"unread", parts.unread},
             {"fisher", std::exp(fisher)}},
            loss};
}

ExpectedLoss loss_by_size(const MeasureInput& original, const MeasureInput& variant) { return expected_loss(original, loss_parts(original, variant)); }
double kept_by_loss(const MeasureInput& original, const MeasureInput& variant) { return kept_at_loss(loss_by_size(original, variant).points); }

}  // namespace

const std::vector<CapacityGuard>& guards() {
    static const std::vector<CapacityGuard> all{
        {"expected-loss",
         "points of accuracy that are expected to be lost after training, by a fit to trained networks: the useful work, the depth and the widths that are "
         "left, the channels and pixels that are read, and how much of the image outputs gather from",
         {true, false, false, false},
         0.5,
         0,
         by_expected_loss,
         kept_by_loss,
         loss_by_size},
        {"fisher-band",
         "Fisher Potential preserved on both sides, together with how well ReLUs distinguish images and what is left of the work of stages and sites and of "
         "the "
         "parameters",
         {true, true, false, false},
         0.52,
         0.03,
         band,
         band_by_size},
        {"fisher-paper", "reject what scores below the original, as the paper does", {true, false, false, false}, 1.00, 0.16, paper},
    };
    return all;
}

std::vector<std::string> guard_names() {
    std::vector<std::string> names;
    for (const CapacityGuard& g : guards()) names.emplace_back(g.name);
    return names;
}

const CapacityGuard& find_guard(std::string_view name) {
    for (const CapacityGuard& g : guards())
        if (g.name == name) return g;
    const std::vector<std::string> names = guard_names();
    throw UsageError(Diagnostic{fmt::format("there is no guard '{}'; there are {}", name, fmt::join(names, ", ")), {}, did_you_mean(name, names)});
}

}  // namespace loopegg
