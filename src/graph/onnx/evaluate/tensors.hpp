// Typed tensors for the evaluator: element types by ONNX's numbers, values in the vector that holds their kind.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/onnx/element_types.hpp"
#include "graph/onnx/evaluate/evaluate.hpp"
#include "graph/onnx/onnx_attrs.hpp"

namespace loopegg::onnx_eval {

using Ints = std::vector<std::int64_t>;
using Kind = OnnxTensor::Kind;
using Inputs = std::span<const OnnxTensor* const>;
using Outputs = std::vector<OnnxTensor>;

using namespace onnx_type;

constexpr std::int64_t max_elements = std::int64_t{1} << 28;

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
[[noreturn]] inline void problem(const std::string& words) { throw EvaluationProblem(words); }

std::int64_t count_of(const Ints& dims);   // throws where there are too many elements
void expect_work(double multiplications);  // throws where nobody would wait for so many multiplications
Kind kind_of(int type);                    // the vector that holds this type
OnnxTensor make(int type, Ints dims);      // zeros
OnnxTensor of_ints(Ints values);           // a list
std::size_t size_of(const OnnxTensor& t);
double number(const OnnxTensor& t, std::size_t i);                                        // an element as a double
std::int64_t whole(const OnnxTensor& t, std::size_t i);                                   // an element as a whole number
void set(OnnxTensor& t, std::size_t i, double value);                                     // rounded to the tensor's type
void copy_element(OnnxTensor& to, std::size_t i, const OnnxTensor& from, std::size_t j);  // of the same kind
OnnxTensor cast(const OnnxTensor& t, int type);

const OnnxTensor& need(Inputs in, std::size_t i);
const OnnxTensor* maybe(Inputs in, std::size_t i);  // null where the input is left out
Ints list_of(const OnnxTensor& t);                  // the elements as whole numbers
std::int64_t rank_of(const OnnxTensor& t);
std::int64_t placed_axis(std::int64_t axis, std::int64_t rank);  // from the end when negative; throws when out of range
// The axes that an attribute (in older opsets) or an input gives; empty where neither gives any.
std::vector<std::int64_t> axes_of(const OnnxNode& node, Inputs in, std::size_t input);

Ints strides_of(const Ints& dims);
Ints broadcast(const Ints& a, const Ints& b);
Ints broadcast_strides(const Ints& dims, const Ints& result);
// Visits the elements of dims in order, with the offset that each list of strides gives.
void each(const Ints& dims, const std::vector<Ints>& strides, const std::function<void(std::size_t, const Ints&)>& visit);
// A tensor whose elements are those of `from` at the places given in order.
OnnxTensor picked(const OnnxTensor& from, Ints dims, const std::function<std::int64_t(std::size_t)>& place);
OnnxTensor reshaped(OnnxTensor t, Ints dims);

// One table for each file of operators; null where a table lacks the operator.
using Operation = Outputs (*)(const OnnxNode& node, Inputs in, std::int64_t opset);
Operation elementwise_operation(const std::string& op);
Operation movement_operation(const std::string& op);
Operation shape_operation(const std::string& op);
Operation reduction_operation(const std::string& op);
Operation window_operation(const std::string& op);
Operation product_operation(const std::string& op);
Operation search_operation(const std::string& op);

}  // namespace loopegg::onnx_eval
