// Which network is worth a training run: the one whose accuracy is expected to improve the answer most.
#pragma once
#include <limits>
#include <optional>
#include <span>

#include "fisher/calibrated_loss.hpp"

namespace loopegg {

// A network that may be trained, perhaps once more.
struct TrainingOption {
    MeasureInput size;
    double ms = 0;
    bool trained = false, excluded = false;  // excluded: not now
};

// What the answer is to be: the least loss within a time, or, without one, the least time within a loss.
struct TrainingGoal {
    double limit_ms = std::numeric_limits<double>::infinity();
    double points = 0;       // that may be lost
    double original_ms = 0;  // a network must be faster
};

// The option whose training run is expected to improve the answer most. The answer is a network that was trained, and
// what is believed of its loss decides. So a
// run can show that an option is better than the best of the others, or that the best one is worse (knowledge gradient; Frazier et al. 2008). None where no run
// promises anything.
std::optional<std::size_t> max_promising(const CalibratedLoss& calibration, std::span<const TrainingOption> options, const TrainingGoal& goal);

}  // namespace loopegg
