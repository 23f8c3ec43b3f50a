#include "optimize/train/what_to_train.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace loopegg {
namespace {

double density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double probability_below(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// The standard deviation of what will be expected of a network after one more training run.
double deviation_of_news(const LossBelief& b) {
    const double variance = b.deviation * b.deviation;
    return variance <= 0 ? 0 : variance / std::sqrt(variance + training_deviation * training_deviation);
}

// The expectation of max(0, x) for a normal x.
double expected_excess(double mean, double deviation) {
    if (deviation <= 0) return std::max(0.0, mean);
    return mean * probability_below(mean / deviation) + deviation * density(mean / deviation);
}

class Gains {
public:
    Gains(const CalibratedLoss& calibration, std::span<const TrainingOption> options, const TrainingGoal& goal) : options_(options), goal_(goal) {
        for (const TrainingOption& o : options) beliefs_.push_back(calibration.belief(o.size));
    }

    double of(std::size_t i) const { return std::isfinite(goal_.limit_ms) ? in_points(i) : in_time(i); }

private:
    // The least loss that is believed of a trained network but `except`; without any, the largest loss of a network that is fast enough.
    double least_but(std::size_t except) const {
        double least = std::numeric_limits<double>::infinity(), largest = 0;
        for (std::size_t i = 0; i < options_.size(); ++i) {
            if (options_[i].ms > goal_.limit_ms) continue;
            largest = std::max(largest, beliefs_[i].points);
            if (options_[i].trained && i != except) least = std::min(least, beliefs_[i].points);
        }
        return std::isfinite(least) ? least : largest;
    }

    double in_points(std::size_t i) const {
        const double others = least_but(i), own = beliefs_[i].points, news = deviation_of_news(beliefs_[i]);
        const bool is_answer = options_[i].trained && own <= others;
        return is_answer ? expected_excess(own - others, news) : expected_excess(others - own, news);
    }

    double in_time(std::size_t i) const {
        double fastest = goal_.original_ms;
        for (std::size_t k = 0; k < options_.size(); ++k)
            if (options_[k].trained && beliefs_[k].points <= goal_.points) fastest = std::min(fastest, options_[k].ms);
        const double news = deviation_of_news(beliefs_[i]), spare = goal_.points - beliefs_[i].points;
        const double allowed = news <= 0 ? (spare >= 0 ? 1.0 : 0.0) : probability_below(spare / news);
        return std::max(0.0, fastest - options_[i].ms) * allowed;
    }

    std::span<const TrainingOption> options_;
    const TrainingGoal& goal_;
    std::vector<LossBelief> beliefs_;
};

}  // namespace

std::optional<std::size_t> max_promising(const CalibratedLoss& calibration, std::span<const TrainingOption> options, const TrainingGoal& goal) {
    const Gains gains(calibration, options, goal);
    std::optional<std::size_t> chosen;
    double most = 0;
    for (std::size_t i = 0; i < options.size(); ++i) {
        if (options[i].excluded || options[i].ms > goal.limit_ms) continue;
        if (const double gain = gains.of(i); gain > most) most = gain, chosen = i;
    }
    return chosen;
}

}  // namespace loopegg
