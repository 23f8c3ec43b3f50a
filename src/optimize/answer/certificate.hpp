// certificate.json: what an independent checker needs to see that the returned network was made from the original by the rules
// (docs/reference/certificate.md).
#pragma once
#include <filesystem>

#include <nlohmann/json.hpp>

#include "rules/rule.hpp"

namespace loopegg {

// The certificate of a folder in which everything else is written. `result` and `sequences` are result.json and sequences.json; `rules` are those of the run.
nlohmann::json certificate_of(const std::filesystem::path& folder, const nlohmann::json& result, const nlohmann::json& sequences, const RuleBook& rules);

// The hashes of the files that a certificate is about.
nlohmann::json certified_files(const std::filesystem::path& folder, const nlohmann::json& result);

}  // namespace loopegg
