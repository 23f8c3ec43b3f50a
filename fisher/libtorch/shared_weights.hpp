// Scores many variants of one network on shared weights, several at a time.
#pragma once
#include <memory>
#include <vector>

#include "fisher/libtorch/executor.hpp"

namespace loopegg {

struct TensorBatches {
    std::vector<at::Tensor> images, labels;  // one for each batch, on the device that scores them
};

// `trained` is empty when each seed draws its own weights.
//
// Every pass runs on one thread and passes run side by side: small convolutions gain little from a second thread, and an answer then
// cannot depend on how many threads there are.
std::unique_ptr<Scorer> shared_weight_scorer(const Graph& original, TensorMap trained, TensorBatches data, const ScorerOptions& options);

}  // namespace loopegg
