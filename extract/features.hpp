// A schedule as numbers: what the learned cost model knows of a nest before anything is compiled.
#pragma once
#include <string_view>
#include <vector>

#include "nest/run/loop_tree.hpp"

namespace loopegg {

// The names of the features, in order. Sizes are given as log2(1 + size).
std::span<const std::string_view> feature_names();

// One value per name. Of a nest with several bodies (cat), each feature is that of the body with most instances.
std::vector<float> features_of(const Statement& statement, const LoopTree& tree);
std::vector<float> features_of(const Term& nest);

}  // namespace loopegg
