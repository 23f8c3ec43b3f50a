// The scales of int8 numbers that a network's inputs need, measured on data.
#pragma once
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "graph/graph.hpp"
#include "graph/int8_scales_name.hpp"

namespace loopegg {

// Runs the network in float32 on this machine, on inputs that look like those it will have, and gives each site with weights the scale of its own input that
// makes the mean square of its rounding smallest, among scales that cut off up to half of the range. Throws UserError where no inputs are given, and where a
// value of the network is not finite.
Weights int8_scales(const Graph& graph, const Weights& weights, std::span<const std::vector<Tensor>> inputs);

// The weights without such scales: what belongs to the network, and not to how it is compiled.
Weights without_int8_scales(Weights weights);

// The scales among the weights as network.json keeps them: {"conv1": [scale, zero]}. The weights have scales of their own, or take those of a network.json.
nlohmann::json int8_scales_json(const Weights& weights);
Weights with_int8_scales(Weights weights, const JsonView& network);
bool has_int8_scales(const JsonView& network);

// The scale and zero of one site's input, from samples of it. Without a value below zero the zero is 0, and otherwise 128.
Tensor int8_input_scale(std::span<const float> samples);

}  // namespace loopegg
