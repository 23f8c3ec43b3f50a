// Runs any graph on LibTorch, node by node, with autograd where a gradient is asked for.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/ATen.h>

#include "fisher/engine.hpp"
#include "fisher/libtorch/restricted.hpp"
#include "graph/graph.hpp"

namespace loopegg {

using TensorMap = std::unordered_map<std::string, at::Tensor>;  // parameters by name

// Running statistics that a training pass moves; the momentum is torch's.
struct Statistics {
    TensorMap* running = nullptr;  // null: the statistics stay as they are
    double momentum = 0.1;
};

struct LabelledImages {
    at::Tensor images, labels;  // a label for each image
};

class Executor {
public:
    // The graph is copied with its batch replaced, so that shapes written into nodes (reshape) fit the batch.
    Executor(const Graph& graph, std::int64_t batch);

    // Is called after each node. The function may replace the node's output, for example by a leaf that wants a gradient.
    using Watch = std::function<void(const Node& node, const std::vector<at::Tensor>& inputs, at::Tensor& output)>;

    // The values of the graph's outputs.
    std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, const TensorMap& parameters, NormMode norm, const Watch& watch = {},
                                Statistics statistics = {}) const;

    // The same, where the outputs of the first nodes are known already: one tensor for each node. Tensors that nobody reads any more may be missing.
    std::vector<at::Tensor> run_after(const std::vector<at::Tensor>& first_nodes, const std::vector<at::Tensor>& inputs, const TensorMap& parameters,
                                      NormMode norm, const Watch& watch) const;

    const Graph& graph() const { return graph_; }

private:
    // One pass through the network: what it reads, how it treats norms, and who watches it.
    struct Pass {
        const std::vector<at::Tensor>& inputs;
        const TensorMap& parameters;
        NormMode norm;
        const Watch& watch;
        Statistics statistics;
    };
    std::vector<at::Tensor> run_from(std::size_t first, std::vector<at::Tensor> values, const Pass& pass) const;
    at::Tensor apply(std::size_t i, const std::vector<at::Tensor>& in, const TensorMap& parameters, NormMode norm, Statistics statistics) const;

    Graph graph_;
    std::vector<std::shared_ptr<const RestrictedOperation>> restricted_;  // one for each node; null: the ordinary operation
    std::vector<std::vector<std::ptrdiff_t>> sources_;                    // of each node's inputs: a node, or -1 - an input of the graph
    std::vector<std::size_t> last_use_;                                   // of each node's output
    std::vector<std::ptrdiff_t> results_;                                 // the graph's outputs, as sources are written
    std::vector<at::Tensor> others_;                                      // values for the inputs after the first, where the caller has none
};

at::Tensor to_torch(const Tensor& tensor);
Tensor from_torch(const at::Tensor& tensor);

}  // namespace loopegg
