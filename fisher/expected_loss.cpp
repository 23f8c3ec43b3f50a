#include "fisher/expected_loss.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace loopegg {
namespace {

// Fitted by 'python3 experiments/accuracy/fit.py' to the short trainings of experiments/accuracy/labels.jsonl.
constexpr double scale = 9.991, decay = 0.271, stage_weight = 0.355, view_weight = 0.141;
// The half of the interval that 90% of the trained networks of a base network left out of the fit lie in: a part of the loss, and a part that
// every label has, because a network trained twice does not reach the same accuracy twice.
constexpr double relative_error = 0.32, label_error = 0.32;
// The smallest and the largest base network of the labels: the law is not drawn out beyond them.
constexpr double least_work = 0.088, most_work = 1.41;   // 10^9 multiply-accumulates
// Work of which nothing is left would be lost without end; the streams through it remain.
constexpr double least_share = 1.0 / 64;

double unseen(const Measurement& m) { return m.receptive_field > 0 ? m.image_side / m.receptive_field : 0; }

}  // namespace

double stage_loss(const Measurement& original, const Measurement& variant) {
    struct Work { double before = 0, after = 0; };
    std::map<std::int64_t, Work> stages;
    double whole = 0, squares = 0;
    for (const SiteWork& site : original.sites) stages[site.places].before += site.macs, whole += site.macs;
    for (const SiteWork& site : variant.sites) stages[site.places].after += site.macs;
    for (const auto& [places, work] : stages) {
        if (work.before == 0) continue;   // a variant that computes at another resolution has stages of its own
        const double lost = work_lost(work.before, work.after);
        squares += work.before / whole * lost * lost;
    }
    return std::sqrt(squares);
}

double work_lost(double before, double after) { return std::max(0.0, -std::log(std::max(after / before, least_share))); }

LossParts loss_parts(const Measurement& original, const Measurement& variant) {
    return {stage_loss(original, variant), std::max(0.0, unseen(variant) - unseen(original))};
}

ExpectedLoss expected_loss(const Measurement& original, const LossParts& parts) {
    const double lost = stage_weight * parts.stages + view_weight * parts.view;
    const double points = scale * std::pow(std::clamp(original.macs / 1e9, least_work, most_work), -decay) * std::expm1(decay * lost);
    const double half = relative_error * points + (lost > 0 ? label_error : 0);
    return {points, points - half, points + half};
}

double kept_at_loss(double points) { return std::exp2(-points); }
double loss_at_kept(double kept) { return -std::log2(std::max(kept, 1e-12)); }

}  // namespace loopegg
