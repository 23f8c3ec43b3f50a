// How many points of accuracy a smaller network is expected to lose after training, predicted from what is left of the original.
//
//   points = (M / 10^9)^-spare * (work_weight * G + depth_weight * D + widths_weight * W + mixing_weight * X
//                                 + view_weight * V + unread_weight * U)
//   M   the original's multiply-accumulates, within the range of the labels. A small network has less to spare than a large one.
//   G   -log of the share of useful work that a stage keeps (a stage is all sites whose outputs have the same number of pixels), as the mean over
//       stages, each weighted by its part of the original's useful work. The work of a stage is useful as far as its places can train its parameters:
//       m / (1 + w / (trainable * places^2)). So a stage of many parameters on few pixels, such as the last one of a ResNet, may lose most of its parameters
//       at a small loss of accuracy.
//   D   the square of -log of the share of its sites that a stage keeps, a third at least, as the same mean. At equal work, some depth and some width
//       cost less than much of either.
//   W   the squares of -log of the shares of channels that a site reads and writes, as a mean over the sites, each weighted by its part of the useful work;
//       a site that is gone counts in D alone. The loss is convex in every width: at equal work, unequal widths cost more than equal ones, because
//       whatever passes a narrow stream or a narrow site has to pass all of it. Without this term, an exact search goes to where narrow and wide meet.
//   X   -log of the share of input channels that an output reads, as the same mean. Groups cost more than the work that they save.
//   V   -log of the share of a sufficient view that is kept. An output gathers from enough of the image when its spread is a fifth of the image's side.
//   U   -log of the share of values that some node reads. Where the branch next to a projection of stride 2 is dropped, nobody reads three quarters of the
//       pixels.
// experiments/accuracy/fit.py fits the seven coefficients to trained networks, and shows how well the formula predicts the restricted forms of a base
// network that the fit has not seen.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fisher/measures.hpp"

namespace loopegg {

struct ExpectedLoss {
    double points = 0, low = 0, high = 0;  // low and high: 90% of trained networks of a base network that no label is of are between them
    std::string unlike{};                  // how the original differs from every labelled one, in words. The interval is then twice as wide
};

struct LossParts {
    double work = 0, depth = 0, widths = 0, mixing = 0, view = 0, unread = 0;  // G, D, W, X, V and U
};

inline constexpr LossParts usual_parts{1, 1, 1, 1, 1, 1};

LossParts loss_parts(const MeasureInput& original, const MeasureInput& variant);

// The sites of one stage, or what is left of them.
struct StageWork {
    double macs = 0, dense_macs = 0, weights = 0, sites = 0;
    void add(const SiteWork& site) { macs += site.macs, dense_macs += site.dense_macs, weights += site.weights, sites += site.macs > 0; }
};

// A site of the original.
struct SiteShare {
    double part = 0, reads = 0, writes = 0;  // part: of the original's useful work
};

// The loss as a sum over the stages and the sites of the original, and what the view costs in addition. So a search can add up a network. What strides
// leave unread (U) is not in the sum: only the whole network shows it.
class StagewiseLoss {
public:
    explicit StagewiseLoss(const MeasureInput& original);

    // From now on the parts of a loss count so many times as much as usual. An extraction then finds networks that are unlike those of the usual loss.
    void stress(const LossParts& factors) { factors_ = factors; }

    std::size_t stages() const { return stages_.size(); }
    std::optional<std::size_t> stage_of(std::int64_t places) const;  // none where the original has no such stage: work there counts for nothing
    // What it costs that only this is left of a stage. More work or more sites never cost more, and more dense work for the same work never costs less.
    double points(std::size_t stage, const StageWork& left) const;
    double width_points(const SiteWork& left) const;  // of a site of the original that reads and writes so many channels
    double view_points(double variance) const;        // of a network whose outputs gather from so far: the square of MeasureInput::spread
    double unread_points(double unread) const;        // of so much more that is unread (MeasureInput::unread)
    double variance() const { return variance_; }     // of the original
    double enough_variance() const;                   // beyond this, a wider view is worth nothing; 0 where the view does not count

private:
    struct Stage {
        std::int64_t places;
        double part;  // of the original's useful work
        StageWork whole;
    };
    std::vector<Stage> stages_;
    std::map<std::string, SiteShare> sites_;
    LossParts factors_ = usual_parts;
    double scale_, variance_, image_side_;
};

// What a variant has left of one stage of the original.
struct StageLeft {
    double part = 0;                     // the stage's part of the original's useful work
    double log_work = 0, log_sites = 0;  // logarithms of the shares of multiply-accumulates and of sites that are left, at most 0
};
// One for each stage of the original, the stage of the fewest places first.
std::vector<StageLeft> stages_left(const MeasureInput& original, const MeasureInput& variant);

// How an original differs from every one of which networks were trained for the fit; empty: it does not.
std::string unlike_labelled(const MeasureInput& original);

ExpectedLoss expected_loss(const MeasureInput& original, const LossParts& parts);

// The share of capacity that represents a loss, and the loss that represents a share. One point represents half of the capacity.
double kept_at_loss(double points);
double loss_at_kept(double kept);

}  // namespace loopegg
