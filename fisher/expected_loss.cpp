#include "fisher/expected_loss.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace loopegg {
namespace {

// Fitted by 'python3 experiments/accuracy/fit.py' to the 16-epoch training runs of experiments/accuracy/labels.jsonl.
constexpr double spare = 0.36, work_weight = 0.610, depth_weight = 0.511, widths_weight = 0.222, mixing_weight = 0.759, view_weight = 5.313,
                 unread_weight = 0.061;
// How many parameters each pair of places of a stage can train, with 50,000 images to train on. fit.py does not fit this number: a third as many predict
// nearly as well (experiments/accuracy/README.md). The number of places without its square predicts a little worse.
constexpr double trainable = 3000;
// Half of the interval in which 90% of the trained networks of a base network are that was left out of the fit. One part is relative to the loss. The other
// part is in every label, because a network trained twice does not reach the same accuracy twice.
constexpr double relative_error = 0.41, label_error = 0.41;
// The smallest and the largest base network of the labels. The formula is not extrapolated beyond them.
constexpr double min_work = 0.0879, max_work = 1.549;  // 10^9 multiply-accumulates
// What all labelled base networks have. How much worse the prediction is without it, no label shows.
constexpr double labelled_side = 32, labelled_classes = 10, unlike_factor = 2;
// The least share of work that counts as kept. A stage without work would lose infinitely much, though the streams through it remain.
constexpr double least_share = 1.0 / 64;
constexpr double min_depth = 1.0 / 3;      // the least share of a stage's sites that counts as kept: networks with empty stages lose no more than that
constexpr double least_spread = 0.5;       // pixels: an output of a single pixel
constexpr double sufficient_spread = 0.2;  // as a share of the image's side: the labels show no loss above this spread

double useful(const StageWork& work, double places) { return work.macs / (1 + work.weights / (trainable * places * places)); }
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

std::map<std::string, SiteShare> site_shares(const MeasureInput& original, const std::vector<StagePair>& stages) {
    std::map<std::int64_t, const StagePair*> at;
    for (const StagePair& s : stages) at[static_cast<std::int64_t>(s.places)] = &s;
    std::map<std::string, SiteShare> shares;
    for (const SiteWork& site : original.sites) {
        const StagePair& stage = *at.at(site.places);
        shares[site.name] = {stage.part * site.macs / stage.before.macs, site.reads, site.writes};
    }
    return shares;
}

double narrowing(double before, double left) {
    if (left <= 0 || left >= before) return 0;
    const double lost = std::log(before / left);
    return lost * lost;
}
double widths_lost(const SiteShare& before, const SiteWork& left) {
    return before.part * (narrowing(before.reads, left.reads) + narrowing(before.writes, left.writes));
}

LossParts parts_of(const StagePair& s) {
    LossParts lost;
    lost.work = s.part * std::max(0.0, std::log(useful(s.before, s.places) / useful(s.left, s.places)));
    const double shallower = -std::log(s.share_of_sites(min_depth));
    lost.depth = s.part * shallower * shallower;
    lost.mixing = s.part * std::max(0.0, log_mixing(s.before) - log_mixing(s.left));
    return lost;
}

double scale_of(const MeasureInput& original) { return std::pow(std::clamp(original.macs / 1e9, min_work, max_work), -spare); }

double weighted(const LossParts& parts, const LossParts& times = usual_parts) {
    return work_weight * times.work * parts.work + depth_weight * times.depth * parts.depth + widths_weight * times.widths * parts.widths +
           mixing_weight * times.mixing * parts.mixing + view_weight * times.view * parts.view + unread_weight * times.unread * parts.unread;
}

}  // namespace

LossParts loss_parts(const MeasureInput& original, const MeasureInput& variant) {
    LossParts lost;
    const std::vector<StagePair> stages = stage_pairs(original, variant);
    for (const StagePair& s : stages) {
        const LossParts here = parts_of(s);
        lost.work += here.work, lost.depth += here.depth, lost.mixing += here.mixing;
    }
    const std::map<std::string, SiteShare> shares = site_shares(original, stages);
    for (const SiteWork& site : variant.sites)
        if (const auto before = shares.find(site.name); before != shares.end()) lost.widths += widths_lost(before->second, site);
    lost.unread = std::max(0.0, variant.unread - original.unread);
    if (original.image_side > 0) lost.view = std::max(0.0, log_view(original.spread, original.image_side) - log_view(variant.spread, variant.image_side));
    return lost;
}

StagewiseLoss::StagewiseLoss(const MeasureInput& original)
    : scale_(scale_of(original)), variance_(original.spread * original.spread), image_side_(original.image_side) {
    const std::vector<StagePair> stages = stage_pairs(original, original);
    for (const StagePair& s : stages) stages_.push_back({static_cast<std::int64_t>(s.places), s.part, s.before});
    sites_ = site_shares(original, stages);
}

std::optional<std::size_t> StagewiseLoss::stage_of(std::int64_t places) const {
    for (std::size_t s = 0; s < stages_.size(); ++s)
        if (stages_[s].places == places) return s;
    return {};
}

double StagewiseLoss::points(std::size_t stage, const StageWork& left) const {
    const Stage& s = stages_[stage];
    return scale_ * weighted(parts_of({static_cast<double>(s.places), s.part, s.whole, at_least(left, s.whole)}), factors_);
}

double StagewiseLoss::width_points(const SiteWork& left) const {
    const auto before = sites_.find(left.name);
    if (before == sites_.end()) return 0;
    LossParts lost;
    lost.widths = widths_lost(before->second, left);
    return scale_ * weighted(lost, factors_);
}

double StagewiseLoss::view_points(double variance) const {
    if (image_side_ <= 0) return 0;
    LossParts lost;
    lost.view = std::max(0.0, log_view(std::sqrt(variance_), image_side_) - log_view(std::sqrt(variance), image_side_));
    return scale_ * weighted(lost, factors_);
}

double StagewiseLoss::unread_points(double unread) const {
    LossParts lost;
    lost.unread = unread;
    return scale_ * weighted(lost, factors_);
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

std::string unlike_labelled(const MeasureInput& original) {
    std::vector<std::string> what;
    if (original.image_side <= 0) what.push_back("its input is no image");
    if (original.image_side > 0 && original.image_side != labelled_side)
        what.push_back(fmt::format("its images have {} pixels along a side", original.image_side));
    if (original.classes != labelled_classes) what.push_back(original.classes > 0 ? fmt::format("it has {} classes", original.classes) : "it has no classes");
    const double work = original.macs / 1e9;
    if (work < min_work || work > max_work) what.push_back(fmt::format("it has {:.3g} G multiply-accumulates", work));
    return fmt::format("{}", fmt::join(what, ", "));
}

ExpectedLoss expected_loss(const MeasureInput& original, const LossParts& parts) {
    const double lost = weighted(parts), points = scale_of(original) * lost;
    if (lost <= 0) return {};
    std::string unlike = unlike_labelled(original);
    const double half = (relative_error * points + label_error) * (unlike.empty() ? 1 : unlike_factor);
    return {points, points - half, points + half, std::move(unlike)};
}

double kept_at_loss(double points) { return std::exp2(-points); }
double loss_at_kept(double kept) { return -std::log2(std::max(kept, 1e-12)); }

}  // namespace loopegg
