// How the oracle of a run judges: the conditions of the rule file's networks, with the user's data, weights and points.
#pragma once
#include "fisher/oracle.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

// `read` must outlive the oracle, which takes its weights.
OracleOptions oracle_options(const OptimizeRequest& request, const ReadNetwork& read, const RuleBook& book);

}  // namespace loopegg
