// How many points of accuracy a smaller network is expected to lose after training, from what is left of the original's work and view.
//
//   points = scale * (M / 10^9)^-decay * (exp(decay * lost) - 1),      lost = stage_weight * G + view_weight * V
//   M   the original's multiply-accumulates, within the range of the labels: a small network has less to spare than a large one
//   G   by stage (sites whose outputs have as many pixels), -log of the share of multiply-accumulates that is kept: the root mean square,
//       each stage by its part of the original's. One stage that is cut down costs more than all of them a little.
//   V   how much less of the image an output sees: image side / receptive field, the variant's minus the original's
// This is a power law of the work, as trained networks of many sizes follow one. experiments/accuracy/fit.py fits the four numbers to trained
// networks, and tells how well they predict the networks of a base network that the fit has not seen.
#pragma once
#include "fisher/measures.hpp"

namespace loopegg {

struct ExpectedLoss {
    double points = 0, low = 0, high = 0;   // low and high: 90% of trained networks lie between them
};

struct LossParts {
    double stages = 0, view = 0;
};

// -log of the share of some work that is left, at least 0; work that is gone counts as a 64th of it.
double work_lost(double before, double after);
// G of the formula above.
double stage_loss(const Measurement& original, const Measurement& variant);
LossParts loss_parts(const Measurement& original, const Measurement& variant);
ExpectedLoss expected_loss(const Measurement& original, const LossParts& parts);

// The share of capacity that stands for a loss, and back: a point is half.
double kept_at_loss(double points);
double loss_at_kept(double kept);

}  // namespace loopegg
