// Checks a run's sequences again, trusting nothing that made them: every proof is replayed against the rule file.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rules/rule.hpp"

namespace loopegg {

struct SiteCheck {
    std::string site;
    bool valid = false;
    std::string why;           // what is wrong, when it is not valid
    std::size_t steps = 0;     // replayed
};

// `sites`: the array of sequences.json, each with the nest that runs as `schedule` (result.json's `nest_after`), which isl judges, and with
// the second one, where a site is restored by a convolution, as `restoring`.
// One answer per site, in order.
std::vector<SiteCheck> replay(const nlohmann::json& sites, const RuleBook& book);

}  // namespace loopegg
