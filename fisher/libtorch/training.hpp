// Trains a network: cross-entropy, optional distillation, cosine schedule, augmentation, checkpoints.
#pragma once
#include "fisher/libtorch/executor.hpp"

namespace loopegg {

double accuracy_of(const Graph& graph, const TensorMap& parameters, const at::Tensor& images, const at::Tensor& labels);

// SGD with Nesterov momentum; the rate rises over the first twentieth of the steps and then follows a cosine to zero.
void train_parameters(const Graph& graph, TensorMap& parameters, const at::Tensor& images, const at::Tensor& labels, const at::Tensor& test_images,
                      const at::Tensor& test_labels, const Graph* teacher, const TensorMap& teacher_parameters, const TrainOptions& options,
                      const std::function<bool(const TrainReport&)>& told);

}  // namespace loopegg
