// The syntax of JSON alone: a text to a value and the places of its parts. Others use base/json.hpp.
#pragma once
#include "base/json.hpp"

namespace loopegg {

// Fills value and place from the whole text, or throws UserError.
void parse_json(const SourcePtr& source, nlohmann::json& value, JsonPlace& place);

}  // namespace loopegg
