// What a returned network tells of the run that made it, in model.onnx's metadata_props and in network.py. So the facts go wherever the file goes.
#pragma once
#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace loopegg {

// Texts by name: the version, the target, both latencies, the expected loss, and the plan. `result` is result.json, and `plan` the text of plan.json.
std::map<std::string, std::string> about_run(const nlohmann::json& result, const std::string& plan);

}  // namespace loopegg
