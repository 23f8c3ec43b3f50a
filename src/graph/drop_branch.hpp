// Leaves out a branch that a site writes into an addition or a concatenation, with everything that only fed it. So a network gets less deep.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// The branch that a site ends: nothing but operators on single channels stand between it and the join.
struct Branch {
    std::string site;                // its last
    std::vector<std::string> joins;  // the addition, or the concatenations, that read it
    std::string value;               // what they read
    std::vector<std::string> only;   // nodes that feed nothing else, the site among them
    std::int64_t macs = 0;           // of these
    std::string why_not;             // why there is no such branch; the rest is empty then
};
Branch branch_written_by(const Graph& graph, const std::string& site);

// Every branch of a network, in the order of their sites. Of two branches that meet in one addition it is the one with more work, so that a
// projection stays.
std::vector<Branch> branches_of(const Graph& graph);

// The network without the branch. The addition becomes its other operand, and a concatenation what is left of it. A rectifier of a rectified value
// becomes that value. Throws UserError with the reason where the branch cannot be left out.
Graph without_branch(const Graph& graph, const Branch& branch);

}  // namespace loopegg
