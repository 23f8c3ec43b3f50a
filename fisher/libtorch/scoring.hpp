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
    double spread() const;  // 1/N log |det (kernel / units)|, over the units that are not idle
};

CodeKernel code_kernel(const at::Tensor& before_relu);

// A forward pass that is kept, with what autograd needs to go back through it. A variant that shares its first nodes with the original starts from
// this pass at the first node that differs.
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
    std::vector<Codes> codes;        // for each rectifier: the sum of ReLU codes up to it, and the spread of its own codes
    std::int64_t bytes() const;
};

KeptForward keep_forward(const Executor& executor, const TensorMap& parameters, const at::Tensor& images, const std::vector<std::string>& layers);

// How many of a batch's images the network is shown at once: all of them, or the network's own batch size where that is written into the network. Throws
// UserError where the number of images is no multiple of that size.
std::int64_t images_at_once(const Graph& graph, std::int64_t images);

// Throws UserError for a network whose output depends on no layer in a way that can be differentiated, and names what is between.
[[noreturn]] void refuse_without_derivative(const Graph& graph);

// The forward pass of a network whose first nodes equal those of the network that is scored, parameters included.
struct SharedForward {
    const KeptForward* pass = nullptr;
    std::size_t nodes = 0;  // how many are equal
};

// `layers` are names in the graph, in order. A layer that the graph lacks is left out of the result. `shared` is not used where weight gradients are wanted.
// An executor for fewer images than the batch holds is run several times.
RawScores score_pass(const Executor& executor, const TensorMap& parameters, const LabelledImages& batch, const std::vector<std::string>& layers,
                     const MeasureSet& wanted, SharedForward shared = {});

}  // namespace loopegg
