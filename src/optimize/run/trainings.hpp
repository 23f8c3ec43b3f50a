// A file of what networks reached in training. The guard learns from it (fisher/calibrated_loss.hpp).
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/source.hpp"
#include "fisher/calibrated_loss.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// What a network reached in each of its training runs.
struct Trained {
    std::vector<double> accuracies;  // percent
    double mean() const;
};

struct Trainings {
    std::shared_ptr<const CalibratedLoss> calibration;
    std::string lines;  // those of the file that are about this network
};

// One training on each line: {"plan": {"steps": [...]}, "accuracy": 91.4}. A plan without steps is the original, which must be there. "base" names the
// network that the plan is for, and lines of other networks are skipped. "recipe" names how it was trained, and must be the same on all lines.
// Throws UserError that points into the file, and where no network but the original was trained.
Trainings read_trainings(const std::filesystem::path& file, const Graph& original, const std::filesystem::path& rules);
// The same lines from elsewhere. There may be none but the original's.
Trainings read_trainings(const SourcePtr& source, const Graph& original, const std::filesystem::path& rules);

}  // namespace loopegg
