// Picks one option of each node of a network: the smallest total time, exactly, where an option may need options of
// other nodes. The network is an e-graph with a
// class for each node, and the choice is an extraction under side constraints (extract/constrained.hpp).
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace loopegg {

// One way to run one node.
struct NodeOption {
    double ms = 0;
    // The option may be picked only together with one of these options of each of these other nodes. Without a Company the option may be picked alone.
    struct Company {
        std::size_t node;
        std::vector<std::size_t> options;
    };
    std::vector<Company> only_with{};
};

struct NodeChoice {
    std::vector<std::size_t> picked;  // for each node, an index into its options
    double ms = 0;
};

// None where no options go together.
std::optional<NodeChoice> choose(const std::vector<std::vector<NodeOption>>& nodes);

}  // namespace loopegg
