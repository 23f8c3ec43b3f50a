// What the training runs of a search came to: result.json's "training".
#pragma once
#include "optimize/answer/answer.hpp"
#include "optimize/train/train_networks.hpp"

namespace loopegg {

nlohmann::json training_json(const Answer& answer, const NetworkTraining& training);

}  // namespace loopegg
