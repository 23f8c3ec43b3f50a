// What result.json tells of a site that is not there any more, because the branch that it fed was dropped.
#pragma once
#include <nlohmann/json.hpp>

#include "optimize/sites.hpp"

namespace loopegg {

nlohmann::json dropped_site(const Site& site);

}  // namespace loopegg
