// How far the outputs of a network whose schedules round operands are from those of float32, on given inputs.
#pragma once
#include <span>

#include "backends/network/network.hpp"

namespace loopegg {

struct RoundingError {
    int sites = 0;                 // sites whose operands are rounded; where there are none, nothing is run
    int outputs = 0;               // first dimensions of the first output, summed over all inputs: one for each image
    int same_answer = 0;           // images whose largest output element stays the same one
    double largest = 0, mean = 0;  // differences of elements, as shares of the largest element of the float32 output
};

// Schedules for this machine that round the operands of those sites, and only those, whose schedules round operands on the target.
Schedules rounded_here(const Graph& graph, const Schedules& schedules, const Target& target);

// Which sites of a network with default schedules for the target round their operands. Where all that may would together move an output further than the
// limit, the sites whose rounding alone moves outputs most keep float32.
struct RoundedSites {
    std::map<std::string, std::string> kinds;  // of numbers, by site
    Schedules kept;                            // schedules in float32 of the sites that keep it
    RoundingError error;                       // of the network with these schedules
};
RoundedSites round_within(double limit, const Graph& graph, const Weights& weights, const Target& target, std::span<const std::vector<Tensor>> inputs);

// Runs the network twice on this machine: in float32, and with the operands rounded that `schedules` round on the target, by the same statements.
// Each of `inputs` has a tensor for every input of the graph.
RoundingError rounding_error(const Graph& graph, const Weights& weights, const Schedules& schedules, const Target& target,
                             std::span<const std::vector<Tensor>> inputs);

}  // namespace loopegg
