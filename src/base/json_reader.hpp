// The syntax of JSON alone: turns a text into a value and the places of its parts. Other files include base/json.hpp instead.
#pragma once
#include "base/json.hpp"

namespace loopegg {

// Fills value and place from the whole text, or throws UserError.
void parse_json(const SourcePtr& source, nlohmann::json& value, JsonPlace& place);

}  // namespace loopegg
