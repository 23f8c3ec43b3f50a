// A site's part of plan.json, read from its entry in sequences.json.
#pragma once
#include <vector>

#include <nlohmann/json.hpp>

#include "graph/graph.hpp"
#include "nest/plan/apply_plan.hpp"

namespace loopegg {

// The applications that make the chosen nest of the entry from the node. The steps of the entry are typed as they stand, where these rules apply them.
std::vector<Application> site_applications(const Node& node, const nlohmann::json& sequence, const NamedRules& rules);

}  // namespace loopegg
