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

double useful(const StageWork& work, double places) { return work.macs / (1 + work.weights / (taught * places * places)); }
double log_mixing(const StageWork& work) { return std::log(work.macs / work.dense_macs); }

// A stage of which less is left counts as if so much were left.
StageWork at_least(const StageWork& left, const StageWork& whole) {
    if (left.macs >= least_share * whole.macs) return left;
    return {least_share * whole.macs, least_share * whole.dense_macs, least_share * whole.weights, left.sites};
}

double log_view(double spread, double image_side) { return std::min(0.0, std::log(std::max(spread, least_spread) / (sufficient_spread * image_side))); }

// A stage of the original, and what a variant has left of it. A variant that computes at another resolution has stages of its own, which count for nothing.
struct StagePair {
    double places = 0, part = 0;  // part: of the original's useful work
    StageWork before, left;
    double share_of_sites(double least) const { return std::clamp(left.sites / before.sites, least, 1.0); }
};

std::map<std::int64_t, StageWork> stages_of(const MeasureInput& network) {
    std::map<std::int64_t, StageWork> stages;
    for (const SiteWork& site : network.sites) stages[site.places].add(site);
    return stages;
}

std::vector<StagePair> stage_pairs(const MeasureInput& original, const MeasureInput& variant) {
    const std::map<std::int64_t, StageWork> before = stages_of(original), after = stages_of(variant);
    double whole = 0;
    for (const auto& [places, stage] : before) whole += useful(stage, static_cast<double>(places));
    std::vector<StagePair> pairs;
    for (const auto& [places, stage] : before) {
        const double at = static_cast<double>(places);
        const auto left = after.find(places);
        pairs.push_back({at, useful(stage, at) / whole, stage, at_least(left == after.end() ? StageWork{} : left->second, stage)});
    }
    return pairs;
}

LossParts parts_of(const StagePair& s) {
    LossParts lost;
    lost.work = s.part * std::max(0.0, std::log(useful(s.before, s.places) / useful(s.left, s.places)));
    const double shallower = -std::log(s.share_of_sites(least_depth));
    lost.depth = s.part * shallower * shallower;
    lost.mixing = s.part * std::max(0.0, log_mixing(s.before) - log_mixing(s.left));
    return lost;
}

double scale_of(const MeasureInput& original) { return std::pow(std::clamp(original.macs / 1e9, least_work, most_work), -spare); }

double weighted(const LossParts& parts) {
    return work_weight * parts.work + depth_weight * parts.depth + mixing_weight * parts.mixing + view_weight * parts.view + unread_weight * parts.unread;
}

}  // namespace

LossParts loss_parts(const MeasureInput& original, const MeasureInput& variant) {
    LossParts lost;
    for (const StagePair& s : stage_pairs(original, variant)) {
        const LossParts here = parts_of(s);
        lost.work += here.work, lost.depth += here.depth, lost.mixing += here.mixing;
    }
    lost.unread = std::max(0.0, variant.unread - original.unread);
    if (original.image_side > 0) lost.view = std::max(0.0, log_view(original.spread, original.image_side) - log_view(variant.spread, variant.image_side));
    return lost;
}

StagewiseLoss::StagewiseLoss(const MeasureInput& original)
    : scale_(scale_of(original)), variance_(original.spread * original.spread), image_side_(original.image_side) {
    for (const StagePair& s : stage_pairs(original, original)) stages_.push_back({static_cast<std::int64_t>(s.places), s.part, s.before});
}

std::optional<std::size_t> StagewiseLoss::stage_of(std::int64_t places) const {
    for (std::size_t s = 0; s < stages_.size(); ++s)
        if (stages_[s].places == places) return s;
    return {};
}

double StagewiseLoss::points(std::size_t stage, const StageWork& left) const {
    const Stage& s = stages_[stage];
    return scale_ * weighted(parts_of({static_cast<double>(s.places), s.part, s.whole, at_least(left, s.whole)}));
}

double StagewiseLoss::view_points(double variance) const {
    if (image_side_ <= 0) return 0;
    LossParts lost;
    lost.view = std::max(0.0, log_view(std::sqrt(variance_), image_side_) - log_view(std::sqrt(variance), image_side_));
    return scale_ * weighted(lost);
}

double StagewiseLoss::unread_points(double unread) const {
    LossParts lost;
    lost.unread = unread;
    return scale_ * weighted(lost);
}

double StagewiseLoss::enough_variance() const {
    const double side = sufficient_spread * image_side_;
    return std::min(side * side, variance_);
}

std::vector<StageLeft> stages_left(const MeasureInput& original, const MeasureInput& variant) {
    std::vector<StageLeft> out;
    for (const StagePair& s : stage_pairs(original, variant))
        out.push_back({s.part, std::min(0.0, std::log(s.left.macs / s.before.macs)), std::log(s.share_of_sites(1.0 / 4))});
    return out;
}

ExpectedLoss expected_loss(const MeasureInput& original, const LossParts& parts) {
    const double lost = weighted(parts), points = scale_of(original) * lost;
    const double half = relative_error * points + (lost > 0 ? label_error : 0);
    return {points, points - half, points + half};
}

double kept_at_loss(double points) { return std::exp2(-points); }
double loss_at_kept(double kept) { return -std::log2(std::max(kept, 1e-12)); }

}  // namespace loopegg
