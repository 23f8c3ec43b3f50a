#include "fisher/conditions.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"

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

// How much worse the ReLUs of the variant distinguish the images.
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

double size_loss(const MeasureInput& original, const MeasureInput& variant, const WorkLoss& work) {
    constexpr double stage_weight = 0.25, site_weight = 0.1, parameter_weight = 0.1;
    return stage_weight * work.stages + site_weight * work.sites + parameter_weight * std::max(0.0, std::log(original.params / variant.params));
}

double band_by_size(const MeasureInput& original, const MeasureInput& variant) { return std::exp(-size_loss(original, variant, work_loss(original, variant))); }

// The loss comes from how far the variant's Fisher Potential has moved, up or down, how much worse its ReLUs distinguish images, and what is left of the work
// of stages and sites and of the parameters. The layer-wise distance and the multiplications of the whole network go into the evidence alone. The weights
// come from trained networks: docs/explanation/guards.md.
Compared band(std::span<const ScoredPair> seeds) {
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
Compared loss(std::span<const ScoredPair> seeds) {
    const LossParts parts = loss_parts(seeds[0].original, seeds[0].variant);
    double fisher = mean_over(seeds, [](const ScoredPair& p) { return std::log(fisher_total(p.variant.raw) / fisher_total(p.original.raw)); });
    // A network that has no gradients at all is never admitted, however large it is.
    return {std::isfinite(fisher) ? expected_loss(seeds[0].original, parts).points : std::numeric_limits<double>::quiet_NaN(),
            {{"work", parts.work},
             {"depth", parts.depth},
             {"widths", parts.widths},
             {"mixing", parts.mixing},
             {"view", parts.view},
             {"unread", parts.unread},
             {"fisher", std::exp(fisher)}}};
}

double loss_by_size(const MeasureInput& original, const MeasureInput& variant) { return expected_loss(original, loss_parts(original, variant)).points; }

// The ratio of values, as the mean over seeds.
ComparedMeasure ratio(const Measure& measure, double spread) {
    const auto of = [&measure](const MeasureInput& original, const MeasureInput& variant) {
        return ratio_of(measure, measure.value(original), measure.value(variant));
    };
    ComparedMeasure row{measure.name, measure.wanted, spread, nullptr, nullptr};
    row.compare = [of, name = std::string(measure.name)](std::span<const ScoredPair> seeds) {
        const double value = mean_over(seeds, [&](const ScoredPair& p) { return of(p.original, p.variant); });
        return Compared{value, {{name, value}}};
    };
    if (find_measure_kind(measure.name)->of_sizes) row.by_size = of;
    return row;
}

}  // namespace

const std::vector<ComparedMeasure>& compared_measures() {
    static const std::vector<ComparedMeasure> all = [] {
        constexpr double unknown = std::numeric_limits<double>::infinity();
        std::vector<ComparedMeasure> rows{{"expected-loss", {true, false, false, false}, 0, loss, loss_by_size},
                                          {"fisher-band", {true, true, false, false}, 0.03, band, band_by_size}};
        for (const Measure& m : measures()) rows.push_back(ratio(m, m.name == "fisher" ? 0.16 : find_measure_kind(m.name)->of_sizes ? 0 : unknown));
        return rows;
    }();
    return all;
}

const ComparedMeasure& compared_measure(std::string_view name) {
    for (const ComparedMeasure& m : compared_measures())
        if (m.name == name) return m;
    throw InternalFault(fmt::format("nothing computes the measure '{}' that rules may name", name));
}

nlohmann::json to_json(const MeasureCondition& c) { return {{"measure", c.measure}, {"comparison", c.at_least ? ">=" : "<="}, {"threshold", c.threshold}}; }

MeasureCondition condition_of(const nlohmann::json& row) {
    const std::string text =
        fmt::format("({} {} {})", row.at("measure").get<std::string>(), row.at("comparison").get<std::string>(), row.at("threshold").get<double>());
    const std::vector<MeasureCondition> read = measure_conditions(text, "evidence");
    if (read.size() != 1) throw UserError(fmt::format("'{}' is no condition on a measure", text));
    return read.front();
}

std::optional<double> points_asked(std::span<const MeasureCondition> conditions) {
    for (const MeasureCondition& c : conditions)
        if (c.kind().is_loss) return c.threshold;
    return {};
}

std::vector<MeasureCondition> with_points(std::vector<MeasureCondition> conditions, double points) {
    for (MeasureCondition& c : conditions)
        if (c.kind().is_loss) return c.threshold = points, conditions;
    conditions.push_back({std::string(default_measure), false, points});
    return conditions;
}

}  // namespace loopegg
