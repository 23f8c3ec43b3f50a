// Runs a node of which neural rules left only a part, by ordinary operations on slices, with autograd.
//
// A domain is a union of products of value sets. Each product is an ordinary convolution over a slice of the input with a slice of the
// weight. Products that line up as the blocks of a diagonal become one convolution with native groups. Where a domain falls into more
// pieces than that is worth, the whole convolution runs with masked weights.
#pragma once
#include <map>
#include <memory>
#include <string>

#include <ATen/ATen.h>

#include "graph/graph.hpp"

namespace loopegg {

class RestrictedOperation {
public:
    virtual ~RestrictedOperation() = default;
    // `inputs` are those of the node. `weight` and `bias` are undefined where the operator has none.
    virtual at::Tensor run(const std::vector<at::Tensor>& inputs, const at::Tensor& weight, const at::Tensor& bias) const = 0;
};

// The node belongs to a complete graph and its domain is not whole. The plan holds for any batch size of a convolution.
std::shared_ptr<const RestrictedOperation> plan_restricted(const Node& node);

}  // namespace loopegg
