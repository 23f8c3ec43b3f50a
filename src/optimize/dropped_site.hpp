// What result.json tells of a site that the network lacks, because the branch that the site fed was dropped.
#pragma once
#include <nlohmann/json.hpp>

#include "optimize/sites.hpp"

namespace loopegg {

nlohmann::json dropped_site(const Site& site);

}  // namespace loopegg
