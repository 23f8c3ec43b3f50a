// A network as data: named nodes in topological order, each with one output tensor.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/source.hpp"
#include "graph/domain.hpp"

namespace loopegg {

using Shape = std::vector<std::int64_t>;
using Attr = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>>;

struct Node {
    std::string name;                     // unique; torchvision's names where the zoo follows it ("layer1.0.conv1")
    std::string op;                       // a row of the operator table (graph/operators.hpp)
    std::vector<std::string> inputs;      // names of nodes or of graph inputs
    std::map<std::string, Attr> attrs{};  // every attribute of the operator is present, defaults filled in
    Domain domain{};                      // what neural rules left of the nest
    Shape shape{};                        // of the output, inferred
    std::vector<Shape> input_shapes{};    // of the inputs, inferred
    Position where{};                     // in the file that the node was read from; operator== ignores it

    std::int64_t integer(std::string_view attr) const;
    double real(std::string_view attr) const;
    bool flag(std::string_view attr) const;
    const std::string& text(std::string_view attr) const;
    const std::vector<std::int64_t>& integers(std::string_view attr) const;

    friend bool operator==(const Node& a, const Node& b);
};

struct GraphInput {
    std::string name;
    Shape shape;  // with the batch: {1, 3, 32, 32}
    std::string dtype = "float32";
    std::string batch{};  // the name ("N") of a first dimension that the model's file leaves open; empty: the dimension is a number in the file
    friend bool operator==(const GraphInput&, const GraphInput&) = default;
};

struct Graph {
    std::string name;
    std::vector<GraphInput> inputs;
    std::vector<Node> nodes;  // topological
    std::vector<std::string> outputs;
    std::string weights_file{};  // next to the model file; empty: seeded initialisation
    std::int64_t opset = 0;      // of the ONNX file that the graph was read from; 0: there was no such file

    const Node* find(std::string_view name) const;
    Node* find(std::string_view name);
    const Shape& shape_of(std::string_view name) const;  // of a node or an input
    friend bool operator==(const Graph&, const Graph&) = default;
};

// Parameters by name ("layer1.0.conv1.weight", "bn1.running_mean"), always float32, row-major.
struct Tensor {
    Shape shape;
    std::vector<float> values;
    friend bool operator==(const Tensor&, const Tensor&) = default;
};
using Weights = std::map<std::string, Tensor>;

// Where a complaint about part of a node belongs: about is "name", "op", "inputs", "inputs.1", "attrs.groups", "domain" or "".
using Locate = std::function<Position(const Node& node, std::string_view about)>;

// Makes a graph that was put together by hand or by a reader whole, or throws UserError: checks names, operators and attributes,
// fills in defaults, puts the nodes in topological order (keeping the order given where it is one), and infers every shape.
void complete(Graph& graph, const Locate& locate = {});

// The same network for another batch, which is the first dimension of the first input and of the inputs that share this dimension. Throws UserError where
// the batch is written into the network, in a class token or a reshape for example.
Graph with_batch(Graph graph, std::int64_t batch);

// The number of elements of a shape; shapes in a complete graph never overflow.
std::int64_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);  // "1x3x32x32"

}  // namespace loopegg
