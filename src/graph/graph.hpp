// A network as data: named nodes in topological order, each with one output tensor.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/source.hpp"
#include "graph/domain.hpp"

namespace loopegg {

using Shape = std::vector<std::int64_t>;
using Attr = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>>;

struct Node {
    std::string name;                    // unique; torchvision's names where the zoo follows it ("layer1.0.conv1")
    std::string op;                      // a row of the operator table (graph/operators.hpp)
    std::vector<std::string> inputs;     // names of nodes or of graph inputs
    std::map<std::string, Attr> attrs;   // every attribute of the operator is present, defaults filled in
    Domain domain{};                     // what neural rules left of the nest
    Shape shape{};                       // of the output, inferred
    Position where{};                    // in the file it was read from
};

struct GraphInput {
    std::string name;
    Shape shape;                         // with the batch: {1, 3, 32, 32}
    std::string dtype = "float32";
};

struct Graph {
    std::string name;
    std::vector<GraphInput> inputs;
    std::vector<Node> nodes;             // topological
    std::vector<std::string> outputs;
    std::string weights_file{};          // beside the model file; empty: seeded initialisation

    const Node* find(std::string_view name) const;
    const Shape& shape_of(std::string_view name) const;   // of a node or an input
};

// Parameters by name ("layer1.0.conv1.weight", "bn1.running_mean"), always float32, row-major.
struct Tensor {
    Shape shape;
    std::vector<float> values;
};
using Weights = std::map<std::string, Tensor>;

}  // namespace loopegg
