// What became of each site of the network that was read.
#pragma once
#include <nlohmann/json.hpp>

#include "backends/network/site_error.hpp"
#include "optimize/answer/answer.hpp"

namespace loopegg {

// What was done to a site, in a word: "dense" where nothing was, "dropped", "narrower" where its channels are fewer, or the name of what became of its nest
// (named_sequences.hpp).
std::string sequence_of(const Answer& answer, const Site& was);

// What a reader sees of a site that is restricted to a domain, or is not there any more.
std::string effect_of(const Site& was, const Site* is, const Domain& domain);

// The row of result.json's "sites".
nlohmann::json site_json(const Answer& answer, const Site& was);

// A site's entry of result.json's "errors".
nlohmann::json bound_json(const ErrorBound& bound);
nlohmann::json errors_json(const std::map<std::string, SiteError>& errors);

// A nest's loops, as people read them.
std::string pseudo(const Term& nest);

}  // namespace loopegg
