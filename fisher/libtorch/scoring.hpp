// One pass of a network that yields its capacity measures.
#pragma once
#include <string>
#include <vector>

#include "fisher/libtorch/executor.hpp"

namespace loopegg {

// The sites whose activations are scored: the convolutions, or all sites of a network without convolutions.
std::vector<std::string> scored_layers(const Graph& graph);

// K[i,j] counts the rectified units that images i and j have in the same state.
struct CodeKernel {
    at::Tensor kernel;           // undefined: no rectifier so far
    double units = 0, idle = 0;  // of one image; idle ones are the same for all images
    void add(const CodeKernel& other);
    double log_determinant() const;
    double spread() const;  // 1/N log |det| over the units that are not idle, a unit
};

CodeKernel code_kernel(const at::Tensor& before_relu);

// A forward pass that is kept, with what autograd needs to go back through it. A variant whose first nodes are the original's starts from
// it at the first node that differs.
struct KeptForward {
    struct Layer {
        std::string name;
        std::size_t node;
        at::Tensor activation;
    };
    struct Codes {
        std::string name;
        std::size_t node;
        CodeKernel sum;
        double own;
    };
    std::vector<at::Tensor> values;  // of each node, in the graph's order
    std::vector<Layer> layers;       // the scored ones
    std::vector<Codes> codes;        // sums of ReLU codes up to a node, and the spread of its own
    std::int64_t bytes() const;
};

KeptForward keep_forward(const Executor& executor, const TensorMap& parameters, const at::Tensor& images, const std::vector<std::string>& layers);

// How many of a batch's images the network is shown at once: all of them, or its own batch where that is written into it. Throws UserError where the batch is
// no multiple of its own.
std::int64_t images_at_once(const Graph& graph, std::int64_t images);

// `layers` are names in the graph, in order. A layer that the graph lacks is left out of the result. `known` is of a network whose first
// `shared` nodes are this one's, parameters included. It is of no use where weight gradients are wanted.
// An executor of fewer images than the batch holds is run in turns.
RawScores score_pass(const Executor& executor, const TensorMap& parameters, const at::Tensor& images, const at::Tensor& labels,
                     const std::vector<std::string>& layers, const Wanted& wanted, const KeptForward* known = nullptr, std::size_t shared = 0);

}  // namespace loopegg
