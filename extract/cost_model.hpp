// A cost model that learns from measured candidates (gradient-boosted trees, XGBoost) and ranks candidates that were not measured.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <string_view>
#include "nest/run/loop_tree.hpp"

namespace loopegg {

class CostModel {
public:
    CostModel();
    ~CostModel();
    CostModel(const CostModel&) = delete;
    CostModel& operator=(const CostModel&) = delete;

    // `speed` is relative to the best candidate of the same nest: the best time over this time, in (0, 1]; 0 for a candidate that failed.
    void add(std::vector<float> features, double speed);
    void fit();  // over everything added; cheap (some hundred rows)
    bool ready() const;
    std::vector<double> predict(std::span<const std::vector<float>> rows) const;  // larger is faster; all zero before the first fit
    std::size_t rows() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// A schedule as numbers: what the learned cost model knows of a nest before anything is compiled.

// The names of the features, in order. Sizes are given as log2(1 + size).
std::span<const std::string_view> feature_names();

// One value per name. Of a nest with several bodies (cat), each feature is that of the body with most instances.
std::vector<float> features_of(const Statement& statement, const LoopTree& tree);
std::vector<float> features_of(const Term& nest);

}  // namespace loopegg
