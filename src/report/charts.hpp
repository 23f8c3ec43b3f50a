// The charts of a run's page as Vega-Lite specifications. Every number in a chart comes from the run's own files.
#pragma once
#include <nlohmann/json.hpp>

#include "report/run.hpp"

namespace loopegg {

nlohmann::json latency_chart(const FinishedRun& run);    // before and after, with the quartile spread
nlohmann::json capacity_chart(const FinishedRun& run);   // the guard's interval for the whole network inside its limits
nlohmann::json sites_chart(const FinishedRun& run);      // one row for each site, before and after
nlohmann::json pareto_chart(const FinishedRun& run);     // the front: latency against expected loss
nlohmann::json networks_chart(const FinishedRun& run);   // every network that was extracted and timed: latency against expected loss
nlohmann::json intervals_chart(const FinishedRun& run);  // the guard's interval of the network and of every step over it
nlohmann::json verdicts_chart(const FinishedRun& run);   // every verdict of the run, worst to best
nlohmann::json stages_chart(const FinishedRun& run);     // where the run's time went

}  // namespace loopegg
