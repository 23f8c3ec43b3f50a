// An extraction as text, by which a run that resumes gets a network back that an earlier process found.
#pragma once
#include <optional>

#include <nlohmann/json.hpp>

#include "network/front.hpp"

namespace loopegg {

nlohmann::json extraction_json(const NetworkGraph& network, const FrontPoint& point);

// None where this e-graph is another one than that of the extraction: its numbers of nodes and edges would mean something else.
std::optional<FrontPoint> extraction_from(const NetworkGraph& network, const nlohmann::json& extraction);

}  // namespace loopegg
