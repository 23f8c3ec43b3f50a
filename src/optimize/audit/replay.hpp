// Checks a run's sequences again and trusts nothing that made them: every proof is replayed against the rule file.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "graph/graph.hpp"
#include "nest/plan/apply_plan.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct SiteCheck {
    std::string site;
    bool valid = false;
    std::string why;        // what is wrong, where the proof is not valid
    std::size_t steps = 0;  // replayed
};

// `sites` is the array of sequences.json. `schedule` of each site is the nest that runs (result.json's `nest_after`), which isl judges. `restoring` of a
// site that a convolution restores is the second nest.
// Gives one answer for each site, in order.
std::vector<SiteCheck> replay(const nlohmann::json& sites, const RuleBook& book);

// A site's part of plan.json, read from its entry in sequences.json.

// The applications that make the chosen nest of the entry from the node. The steps of the entry are typed as they are, where these rules apply them.
std::vector<Application> site_applications(const Node& node, const nlohmann::json& sequence, const NamedRules& rules);

}  // namespace loopegg
