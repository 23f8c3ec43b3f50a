// Puts the results of a restricted operation in their places: the computed pieces and the restored values.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

#include "graph/domain_sets.hpp"

namespace loopegg {

// Which output elements a piece computes: a product of values, one list for each output axis.
using OutputSet = std::vector<std::vector<std::int64_t>>;

class OutputAssembly {
public:
    // `extents` are those of the output axes without any leading batch. `channels` says which of these axes a bias runs over. `sources` are as
    // output_sources gives them for these axes. Places may overlap, and the values that several pieces give for one output are added.
    OutputAssembly(std::vector<std::int64_t> extents, std::size_t channels, std::vector<OutputSet> places, const std::vector<std::int64_t>& sources);

    // Turns one tensor for each place, each [batch, values of the axes...], into [batch, extents...]. A bias (undefined: none) is added to the
    // computed elements, before others are restored from them.
    at::Tensor assemble(const std::vector<at::Tensor>& pieces, const at::Tensor& bias) const;

private:
    bool try_product(const std::vector<std::int64_t>& sources);

    std::vector<std::int64_t> extents_;
    std::size_t channels_;
    std::vector<OutputSet> places_;
    // Where the places tile a product of lists along one axis: join there, then pick along each axis.
    bool product_ = false;
    std::int64_t join_axis_ = 0;
    std::vector<at::Tensor> pick_;  // one for each axis; undefined: the axis stays as it is
    at::Tensor bias_channels_;      // of the joined tensor; undefined: all
    // Otherwise: add each piece at its flat places, then gather.
    std::vector<at::Tensor> flat_;  // one for each place
    at::Tensor computed_;           // 1 where some piece adds a value, 0 elsewhere
    at::Tensor gather_, keep_;      // undefined: nothing is gathered, or all is kept
};

}  // namespace loopegg
