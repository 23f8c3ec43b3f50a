// The operators of networks, one row each: what a node may say, what shape and parameters follow, and its loop nest.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

enum class AttrKind { integer, real, boolean, text, integers };

struct AttrSpec {
    std::string_view name;
    AttrKind kind;
    std::optional<Attr> fallback{};  // none: the attribute must be given
    int length = 0;                  // of a list, where one number may represent all; 0: any length
    std::int64_t low = 0;            // the smallest whole number allowed
    std::string_view like{};         // the attribute whose value is the fallback
};

// A tensor that the node owns.
struct Parameter {
    std::string name;  // in Weights: "layer1.0.conv1.weight"
    Shape shape;
    bool trained = true;  // false: a statistic (running_mean), not counted as a parameter
};

// An iterator of the node's loop nest. The output's elements are the output axes' values in row-major order of their listing.
struct Axis {
    std::string name;
    std::int64_t extent = 1;
    bool reduction = false;
    friend bool operator==(const Axis&, const Axis&) = default;
};

// What is wrong with a node, before its place in the file is known.
struct NodeProblem {
    std::string message;
    std::string about;  // as in Locate
};

struct Operator {
    std::string_view name;
    int min_inputs = 1, max_inputs = 1;
    std::vector<AttrSpec> attrs;
    // The output's shape from node.attrs and node.input_shapes; throws NodeProblem.
    Shape (*infer)(const Node& node);
    // Null for an operator that owns no tensors.
    std::vector<Parameter> (*parameters)(const Node& node) = nullptr;
    // Null for an operator that is no site (it has no multiply-accumulate nest).
    std::vector<Axis> (*axes)(const Node& node) = nullptr;
};

const std::vector<Operator>& operators();
const Operator* find_operator(std::string_view name);  // null when there is none
const Operator& operator_of(const Node& node);         // of a complete graph's node

// For a node of a complete graph:
std::vector<Parameter> parameters_of(const Node& node);
// conv2d: n g co ci oh ow kh kw (co and ci within a group); linear: n co ci (n: all leading dimensions); matmul: b i j k
// (O[b,i,j] += A[b,i,k] * B[b,k,j]). Extents of 1 are listed. Empty for an operator that is no site.
std::vector<Axis> axes_of(const Node& node);
bool is_site(const Node& node);

}  // namespace loopegg
