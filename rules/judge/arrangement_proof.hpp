// Proves rules that arrange a whole nest by the loops of a tile: (nest ?n ?s) => (nest ?n (par (tile ?n ?s ?t shared) ...)).
//
// How many loops there are depends on the nest, so a part of a tile is one loop of its own, whatever its loops are. What the parts are is promised by the
// list that the tile comes from (rules/tile_contracts.hpp): all of them together visit each instance once.
#pragma once
#include <set>
#include <string>

#include "rules/rule.hpp"

namespace loopegg {

bool is_arrangement(const Rule& rule);
std::set<std::string> arrangement_roundings(const Rule& rule);  // what its loops round operands to: kinds of numbers, and variables of places

struct ArrangementFinding {
    std::string wrong;  // empty: proved
    bool reorders_sums = false;
};
ArrangementFinding prove_arrangement(const Rule& rule);

}  // namespace loopegg
