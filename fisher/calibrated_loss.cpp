#include "fisher/calibrated_loss.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace loopegg {
namespace {

// Fitted by 'python3 experiments/accuracy/calibrate.py' to the 16-epoch training runs among the first 547 lines of
// experiments/accuracy/labels.jsonl.
constexpr double scale = 0.374, work_slope = 0.677, sites_slope = 2.743, bend = 0.317;
constexpr double work_steepness = 2.771, sites_steepness = 7.530;  // how fast likeness falls with the squared difference of the logarithms
constexpr double training_error = 0.249;                           // points: the standard deviation of one training
constexpr double least_error = 0.05;                               // points: what no number of training runs removes
// Where smaller networks train better than their original, training runs would imply that less work is better still, and a search would follow. So a network is
// always expected to lose this share of the guard's own expectation, and networks of which nothing else is known are ordered by the guard.
constexpr double least_of_guess = 0.1;
constexpr double ninety_percent = 1.645;  // standard deviations on either side hold nine of ten

double squared(double x) { return x * x; }

double covariance(double guess, const std::vector<StageLeft>& a, double other_guess, const std::vector<StageLeft>& b) {
    double slopes = 0, apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {  // both have the original's stages
        slopes += squared(a[i].part) * (squared(work_slope) * a[i].log_work * b[i].log_work + squared(sites_slope) * a[i].log_sites * b[i].log_sites);
        apart += a[i].part * (work_steepness * squared(a[i].log_work - b[i].log_work) + sites_steepness * squared(a[i].log_sites - b[i].log_sites));
    }
    return squared(scale) * guess * other_guess + slopes + squared(bend) * std::sqrt(guess * other_guess) * std::exp(-apart / 2);
}

// Solves root * x = b, where root is a lower triangle.
std::vector<double> solve_lower(const std::vector<std::vector<double>>& root, std::vector<double> b) {
    for (std::size_t i = 0; i < b.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) b[i] -= root[i][k] * b[k];
        b[i] /= root[i][i];
    }
    return b;
}

std::vector<double> solve_upper(const std::vector<std::vector<double>>& root, std::vector<double> b) {
    for (std::size_t i = b.size(); i-- > 0;) {
        for (std::size_t k = i + 1; k < b.size(); ++k) b[i] -= root[k][i] * b[k];
        b[i] /= root[i][i];
    }
    return b;
}

}  // namespace

const double training_deviation = training_error;

CalibratedLoss::CalibratedLoss(MeasureInput original, std::vector<TrainedNetwork> trained, int original_seeds)
    : original_(std::move(original)), trained_(std::move(trained)), original_seeds_(original_seeds) {
    Hasher key;
    std::vector<double> errors;
    for (const TrainedNetwork& t : trained_) {
        fitted_.push_back(describe(t.size));
        errors.push_back(t.lost - fitted_.back().guess);
        key.add(fitted_.back().guess).add(t.lost).add(t.seeds);
        for (const StageLeft& s : fitted_.back().stages) key.add(s.log_work).add(s.log_sites);
    }
    key_ = key.add(original_seeds).finish();
    const double shared = squared(training_error) / original_seeds;
    for (std::size_t i = 0; i < fitted_.size(); ++i) {  // Cholesky's decomposition, row by row
        std::vector<double> row = covariances(fitted_[i]);
        row.resize(i + 1);
        for (double& c : row) c += shared;
        row[i] += squared(training_error) / trained_[i].seeds + squared(least_error);
        for (std::size_t j = 0; j <= i; ++j) {
            for (std::size_t k = 0; k < j; ++k) row[j] -= row[k] * (j < i ? root_[j][k] : row[k]);
            row[j] = j < i ? row[j] / root_[j][j] : std::sqrt(row[j]);
        }
        root_.push_back(std::move(row));
    }
    solved_ = solve_upper(root_, solve_lower(root_, std::move(errors)));
}

CalibratedLoss CalibratedLoss::with(TrainedNetwork another) const {
    std::vector<TrainedNetwork> all = trained_;
    all.push_back(std::move(another));
    return {original_, std::move(all), original_seeds_};
}

CalibratedLoss::Described CalibratedLoss::describe(const MeasureInput& variant) const {
    return {expected_loss(original_, loss_parts(original_, variant)).points, stages_left(original_, variant)};
}

std::vector<double> CalibratedLoss::covariances(const Described& network) const {
    std::vector<double> out;
    for (const Described& t : fitted_) out.push_back(covariance(network.guess, network.stages, t.guess, t.stages));
    return out;
}

LossBelief CalibratedLoss::belief(const MeasureInput& variant) const {
    const Described network = describe(variant);
    if (network.guess <= 0) return {};
    const std::vector<double> with = covariances(network);
    double points = network.guess, unknown = covariance(network.guess, network.stages, network.guess, network.stages);
    for (std::size_t i = 0; i < with.size(); ++i) points += with[i] * solved_[i];
    for (double known : solve_lower(root_, with)) unknown -= squared(known);
    return {std::max(points, least_of_guess * network.guess), std::sqrt(std::max(0.0, unknown))};
}

ExpectedLoss CalibratedLoss::loss(const MeasureInput& variant) const {
    const LossBelief belief = this->belief(variant);
    if (belief.points <= 0) return {};
    const double half = ninety_percent * std::sqrt(squared(belief.deviation) + squared(training_error));
    return {belief.points, belief.points - half, belief.points + half};
}

}  // namespace loopegg
