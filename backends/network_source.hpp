// The C source of a compiled network: its steps as tables, a plain entry point, and the header that others include.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "backends/kernel.hpp"
#include "graph/graph.hpp"

namespace loopegg {

struct PlacedOperand {
    bool constant = false;           // in the weights, not in the arena
    std::int64_t offset = 0;         // floats
};
struct PlacedStep {
    int kernel = -1;                 // -1: a copy of operands[1] to operands[0]
    std::vector<PlacedOperand> operands;
    Shape shape{};
    std::vector<std::int64_t> to_strides{}, from_strides{};
    std::string site{};
};
struct PlacedNetwork {
    std::string name;
    std::vector<GraphInput> inputs, outputs;
    std::vector<std::int64_t> input_offsets, output_offsets;
    std::vector<PlacedOperand> output_places;
    std::vector<Kernel> kernels;
    std::vector<PlacedStep> steps;
    std::int64_t arena = 0;
    std::vector<float> weights;
};

std::string network_source(const PlacedNetwork& network);
std::string network_header(const PlacedNetwork& network);

}  // namespace loopegg
