#include "fisher/expected_loss.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace loopegg {
namespace {

// Fitted by 'python3 experiments/accuracy/fit.py' to the short trainings of experiments/accuracy/labels.jsonl.
constexpr double spare = 0.38, work_weight = 0.762, depth_weight = 0.198, mixing_weight = 0.660, view_weight = 5.991, unread_weight = 0.064;
// How many parameters each pair of places of a stage can teach, with 50,000 images to train on. fit.py does not fit this number: a third as many predict
// nearly as well (experiments/accuracy/README.md). The number of places without its square predicts a little worse.
constexpr double taught = 3000;
// Half of the interval in which 90% of the trained networks of a base network lie that was left out of the fit. One part is relative to the loss. The other
// part is in every label, because a network trained twice does not reach the same accuracy twice.
constexpr double relative_error = 0.39, label_error = 0.39;
// The smallest and the largest base network of the labels. The formula is not extrapolated beyond them.
constexpr double least_work = 0.088, most_work = 1.41;  // 10^9 multiply-accumulates
// The least share of work that counts as kept. A stage without work would lose infinitely much, though the streams through it remain.
constexpr double least_share = 1.0 / 64;
constexpr double least_depth = 1.0 / 3;    // the least share of a stage's sites that counts as kept: networks with empty stages lose no more than that
constexpr double least_spread = 0.5;       // pixels: an output of a single pixel
constexpr double sufficient_spread = 0.2;  // as a share of the image's side: the labels show no loss above this spread

struct Stage {
    double macs = 0, dense_macs = 0, weights = 0, sites = 0;
    void add(const SiteWork& site) { macs += site.macs, dense_macs += site.dense_macs, weights += site.weights, sites += site.macs > 0; }
    double useful(double places) const { return macs / (1 + weights / (taught * places * places)); }
    double log_mixing() const { return std::log(macs / dense_macs); }
    Stage at_least(const Stage& original) const {
        if (macs >= least_share * original.macs) return *this;
        return {least_share * original.macs, least_share * original.dense_macs, least_share * original.weights, sites};
    }
};

double log_view(const MeasureInput& m) { return std::min(0.0, std::log(std::max(m.spread, least_spread) / (sufficient_spread * m.image_side))); }

// A stage of the original, and what a variant has left of it. A variant that computes at another resolution has stages of its own, which count for nothing.
struct StagePair {
    double places = 0, part = 0;  // part: of the original's useful work
    Stage before, left;
    double share_of_sites(double least) const { return std::clamp(left.sites / before.sites, least, 1.0); }
};

std::vector<StagePair> stage_pairs(const MeasureInput& original, const MeasureInput& variant) {
    std::map<std::int64_t, Stage> before, after;
    double whole = 0;
    for (const SiteWork& site : original.sites) before[site.places].add(site);
    for (const SiteWork& site : variant.sites) after[site.places].add(site);
    for (const auto& [places, stage] : before) whole += stage.useful(static_cast<double>(places));
    std::vector<StagePair> pairs;
    for (const auto& [places, stage] : before) {
        const double at = static_cast<double>(places);
        pairs.push_back({at, stage.useful(at) / whole, stage, after[places].at_least(stage)});
    }
    return pairs;
}

}  // namespace

LossParts loss_parts(const MeasureInput& original, const MeasureInput& variant) {
    LossParts lost;
    for (const StagePair& s : stage_pairs(original, variant)) {
        lost.work += s.part * std::max(0.0, std::log(s.before.useful(s.places) / s.left.useful(s.places)));
        const double shallower = -std::log(s.share_of_sites(least_depth));
        lost.depth += s.part * shallower * shallower;
        lost.mixing += s.part * std::max(0.0, s.before.log_mixing() - s.left.log_mixing());
    }
    lost.unread = std::max(0.0, variant.unread - original.unread);
    if (original.image_side > 0) lost.view = std::max(0.0, log_view(original) - log_view(variant));
    return lost;
}

std::vector<StageLeft> stages_left(const MeasureInput& original, const MeasureInput& variant) {
    std::vector<StageLeft> out;
    for (const StagePair& s : stage_pairs(original, variant))
        out.push_back({s.part, std::min(0.0, std::log(s.left.macs / s.before.macs)), std::log(s.share_of_sites(1.0 / 4))});
    return out;
}

ExpectedLoss expected_loss(const MeasureInput& original, const LossParts& parts) {
    const double lost =
        work_weight * parts.work + depth_weight * parts.depth + mixing_weight * parts.mixing + view_weight * parts.view + unread_weight * parts.unread;
    const double points = std::pow(std::clamp(original.macs / 1e9, least_work, most_work), -spare) * lost;
    const double half = relative_error * points + (lost > 0 ? label_error : 0);
    return {points, points - half, points + half};
}

double kept_at_loss(double points) { return std::exp2(-points); }
double loss_at_kept(double kept) { return -std::log2(std::max(kept, 1e-12)); }

}  // namespace loopegg
