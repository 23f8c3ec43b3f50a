// Operators with loops as data: a row here is an operator of networks, with its shape, its loop nest and its LibTorch, ONNX and Python forms.
//
// A row gives names to numbers: to the dimensions of its inputs ("N C L") and to the numbers of its attributes ("K"). Extents, indices and formulas use
// these names. In formulas I and J are the elements of the inputs that an instance reads, and `acc` is what `combine` made of all instances of an output
// element.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/term.hpp"
#include "graph/operators.hpp"

namespace loopegg {

struct LoopAttribute {
    AttrSpec spec;                          // a whole number, or a list of a fixed length
    std::string_view sizes;                 // the names of its numbers
    std::string_view onnx;                  // ONNX's name of the attribute; "pads" repeats the numbers, for both ends
    std::optional<std::int64_t> in_onnx{};  // what ONNX takes for each number when the file does not say; none: the file must say
};

// An attribute of the ONNX operator that has one value for this row.
struct FixedOnnxAttribute {
    std::string_view name;
    std::int64_t value;   // of a whole number, or of every number of a list
    std::int64_t absent;  // what ONNX takes when the file does not say
};

enum class LoopCombine { assign, sum, max };

struct LoopOperator {
    std::string_view name;
    std::vector<std::string_view> inputs;  // one or two: the names of the dimensions
    std::vector<LoopAttribute> attributes;
    std::string_view loops;               // "(n N) (k K)": axes and their extents. Axes that `output` lacks are reductions: ci k kd kh kw
    std::string_view output;              // the axes that are the output's dimensions, in order
    std::vector<std::string_view> reads;  // for each input, the index of each dimension: a sum of axes times numbers
    LoopCombine combine;                  // of the instances of one output element
    std::string_view value = "I";         // what an instance gives
    std::string_view finish = "acc";      // what is done to an output element after its last instance
    std::string_view onnx{};              // the ONNX operator of this meaning; empty: there is none, and a network with this operator is not exported
    std::vector<FixedOnnxAttribute> fixed{};
    std::string_view python;  // PyTorch's words, with {x}, {y} and attributes in braces
};

const std::vector<LoopOperator>& loop_operators();
const LoopOperator* find_loop_operator(std::string_view name);  // null when there is none

// The numbers of a row, in order: dimensions of inputs, then attributes. A '?' after a name says that the number may be 0.
std::vector<std::string> size_names(const LoopOperator& op);
// The values of these numbers for a node. Throws NodeProblem for inputs that do not fit the row.
std::vector<std::int64_t> sizes_of(const LoopOperator& op, const Node& node);

// offset + sum of coefficients * axes; one coefficient for each axis.
struct LoopIndex {
    std::vector<std::int64_t> coefficients;
    std::int64_t offset = 0;
};

// The smallest and the largest value of an index.
std::pair<std::int64_t, std::int64_t> reach(const LoopIndex& index, const std::vector<Axis>& axes);

struct LoopRead {
    Shape shape;
    std::vector<LoopIndex> index;  // one for each dimension
    bool padded = false;           // some instance reads outside the input, and gets LoopNest::identity() there
};

// A row whose named numbers have values.
struct LoopNest {
    std::vector<Axis> axes;
    std::vector<std::size_t> output;  // axes
    std::vector<LoopRead> reads;      // of I, then of J
    LoopCombine combine;
    Term value, finish;

    Shape output_shape() const;
    double identity() const;  // what an output element is before its first instance, and what a read outside an input gives: 0, or -infinity for a maximum
};

// Throws NodeProblem for numbers that cannot be.
LoopNest loop_nest(const LoopOperator& op, std::span<const std::int64_t> sizes);

}  // namespace loopegg
