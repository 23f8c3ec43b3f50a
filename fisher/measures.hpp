// The capacity measures, one row each.
//
// With activations A and gradients g of the loss at layer l over a minibatch of N, and weights w:
//   fisher        sum over layers and channels c of 1/(2N) sum_n (sum_ij A[n,c,i,j] g[n,c,i,j])^2        (Turner et al., ASPLOS 2021)
//   fisher-layer  exp of the mean over layers of log(layer's fisher): no layer outweighs the others
//   naswot        log |det K|, K[i,j] = number of rectified units in which images i and j agree          (Mellor et al., ICML 2021)
//   synflow       log sum |w dR/dw|, R = sum of outputs on an image of ones, weights absolute, no norms  (Tanaka et al., NeurIPS 2020)
//   snip          sum |w dL/dw|                                                                          (Lee et al., ICLR 2019)
//   grad-norm     sum over layers of |dL/dw|_2                                                           (Abdelfattah et al., ICLR 2021)
//   params, macs  trained values and multiply-accumulates: the controls
//   ensemble      naswot/N + 0.5 log(geometric / arithmetic mean of the layers' fisher) + 0.05 synflow + log macs: units that tell images
//                 apart, layers that all matter, and size; the weights were fitted on the first of bench/nb201's cells and tested on the others
// besides these, for guards, how differently ReLUs code the images, whatever their number:
//   code spread   1/N log |det (K / units)|, over the units that are not the same for all images (a channel restored by zeros is no unit)
// and over a set of networks:
//   rank-sum      the mean of a network's ranks by fisher, naswot, synflow, params and macs, from 0 (last) to 1 (first)
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fisher/engine.hpp"

namespace loopegg {

// The work of one site. The convolution that brings its channels back counts as part of the site.
struct SiteWork {
    std::string name;
    double macs = 0;
    std::int64_t places = 1;       // pixels (or rows) of the output; sites with the same number make up a stage
    double weights = 0;            // trained values
    double dense_macs = 0;         // what macs would be if every output read every input channel
    double reads = 0, writes = 0;  // channels; none of a product of activations
};

// What a measure may look at: one network on one seed.
struct MeasureInput {
    RawScores raw;
    double params = 0, macs = 0;
    std::vector<SiteWork> sites{};
    double image_side = 0;  // pixels of the input along one side
    double classes = 0;     // of the output, where it has one value for each
    double unread = 0;      // summed over values: -log of the share of a value's pixels that some node reads; a 1x1 window of stride 2 skips three quarters
    double spread = 0;      // how far an output gathers from: the standard deviation, in input pixels, of a random way through the windows
};

// The sizes of a network, without scores.
MeasureInput sizes_of(const Graph& graph);

struct Measure {
    std::string_view name, summary;
    MeasureSet wanted;
    double (*value)(const MeasureInput&);
    bool logarithm;  // the value is a logarithm: a ratio to the original is exp of the difference
};

const std::vector<Measure>& measures();
const Measure& find_measure(std::string_view name);  // throws UsageError with 'did you mean'

MeasureSet operator|(const MeasureSet& a, const MeasureSet& b);

double fisher_total(const RawScores& raw);

// The ratio of a variant's value to the original's, or NaN where the ratio makes no sense.
double ratio_of(const Measure& measure, double original, double variant);

// rank[i] in [0, 1] of each value among all, ties shared.
std::vector<double> ranks(std::span<const double> values);
double spearman(std::span<const double> a, std::span<const double> b);
// The chance that a network of the first kind gets a larger value than a network of the second kind: 0.5 is chance, 1 separates the kinds.
double area_under_curve(std::span<const double> of_first, std::span<const double> of_second);

// A mean and the half-width of its confidence interval (Student's t, 90%); with one value the half-width is infinite.
struct Interval {
    double mean = 0, half = 0;
    double low() const { return mean - half; }
    double high() const { return mean + half; }
};
Interval interval_of(std::span<const double> values);

}  // namespace loopegg
