// Leaves out a branch that a site writes into an addition or a concatenation, with every node that feeds nothing else. So a network gets less deep.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// The branch that ends in a site: nothing but operators on single channels is between the site and the join.
struct Branch {
    std::string site;                // the last site of the branch
    std::vector<std::string> joins;  // the addition, or the concatenations, that read the branch
    std::string value;               // the value that the joins read
    std::vector<std::string> only;   // nodes that feed nothing but the branch, the site among them
    std::int64_t macs = 0;           // of the nodes in `only`
    std::string why_not;             // why there is no such branch; the rest is empty then
};
Branch branch_written_by(const Graph& graph, const std::string& site);

// Every branch of a network, in the order of their sites. Of two branches that meet in one addition only the branch with more work is listed, so that a
// projection stays.
std::vector<Branch> branches_of(const Graph& graph);

// The network without the branch. The other operand of the addition takes the addition's place, and a concatenation continues with its other operands.
// A rectifier of a rectified value becomes that value. Throws UserError with the reason where the branch cannot be left out.
Graph without_branch(const Graph& graph, const Branch& branch);

}  // namespace loopegg
