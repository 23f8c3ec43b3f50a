// The tables that the runtime of a CPU network reads (backends/runtime/loopegg_network.h), made from a network whose values have their places.
#pragma once
#include <string>
#include <vector>

#include "backends/network/network_source.hpp"
#include "backends/runtime/loopegg_network.h"

namespace loopegg {

// Pointers between tables are left null: whoever writes the tables down writes them.
struct NetworkTables {
    std::vector<loopegg_step> steps;
    std::vector<loopegg_operand> operands, output_places;
    std::vector<loopegg_dimension> dimensions;
    std::vector<loopegg_operator> operators;
    std::vector<std::string> nodes;  // one for each of `operators`
    std::vector<long> operator_dims;
    std::vector<std::int64_t> input_sizes, output_sizes, input_offsets, output_offsets;
    loopegg_tables counts{};  // the numbers alone
};

NetworkTables network_tables(const PlacedNetwork& network);

}  // namespace loopegg
