// The expected loss of networks, calibrated on training runs of other networks that were made from the same original.
//
// The loss of a network is what the guard expects, g, and a correction. The correction is learned from networks that were trained. It is a Gaussian
// process, and its covariance for two networks is
//
//   scale^2 g g'                                          the guard expects too much, or too little, of all networks of this original
//   + work_slope^2 <w, w'> + sites_slope^2 <s, s'>        a stage counts for more, or for less, than the guard thinks
//   + bend^2 sqrt(g g') exp(-d^2 / 2)                     networks that are alike err alike
//
// w and s hold, for each stage, the logarithms of the shares of work and of sites that are left, times the stage's part of the useful work
// (expected_loss.hpp). d is the distance of two networks in these logarithms. All three terms are zero for the original, which loses nothing.
// experiments/accuracy/calibrate.py fits the constants, and reports how much a few training runs improve predictions for a base network that was held out.
#pragma once
#include <cstddef>
#include <vector>

#include "base/hash.hpp"
#include "fisher/expected_loss.hpp"

namespace loopegg {

struct TrainedNetwork {
    MeasureInput size;
    double lost = 0;  // points, compared with the original's mean accuracy
    int seeds = 1;    // training runs that `lost` is the mean of
};

// What is believed of the loss that a network shows on average over its training runs.
struct LossBelief {
    double points = 0;     // expected
    double deviation = 0;  // standard deviation: what more training runs could reduce
};

class CalibratedLoss {
public:
    // `original_seeds`: training runs of the original. Its error is in every loss.
    CalibratedLoss(MeasureInput original, std::vector<TrainedNetwork> trained, int original_seeds);

    ExpectedLoss loss(const MeasureInput& variant) const;
    LossBelief belief(const MeasureInput& variant) const;
    CalibratedLoss with(TrainedNetwork another) const;  // what would be known if that network had been trained as well
    std::size_t networks() const { return fitted_.size(); }
    Hash128 key() const { return key_; }  // of the training runs

private:
    struct Described {
        double guess = 0;  // the guard's own expectation
        std::vector<StageLeft> stages;
    };
    Described describe(const MeasureInput& variant) const;
    std::vector<double> covariances(const Described& network) const;  // with each network of the fit

    MeasureInput original_;
    std::vector<TrainedNetwork> trained_;
    int original_seeds_;
    std::vector<Described> fitted_;
    std::vector<std::vector<double>> root_;  // of the covariance of the fitted networks: a lower triangle, by rows
    std::vector<double> solved_;             // that covariance, solved for the errors of the guard
    Hash128 key_;
};

// The standard deviation of the accuracy of one training, in points.
extern const double training_deviation;

}  // namespace loopegg
