// Trains a network: cross-entropy, optional distillation, cosine schedule, augmentation, checkpoints.
#pragma once
#include <functional>
#include <optional>

#include "fisher/libtorch/executor.hpp"

namespace loopegg {

double accuracy_of(const Graph& graph, const TensorMap& parameters, const at::Tensor& images, const at::Tensor& labels);

// The training images, and those on which accuracy is measured.
struct TensorSplits {
    LabelledImages train, test;
};

// A network whose soft labels are learned from.
struct Teacher {
    const Graph& graph;
    TensorMap parameters;
};

// SGD with Nesterov momentum; the rate rises over the first twentieth of the steps and then follows a cosine to zero.
void train_parameters(const Graph& graph, TensorMap& parameters, const TensorSplits& data, const std::optional<Teacher>& teacher, const TrainOptions& options,
                      const std::function<bool(const TrainReport&)>& on_epoch);

}  // namespace loopegg
