// Every variant of a site that runs judged or timed, as one table: what was changed, what the guard said, how long it took, and why it was not chosen.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/run.hpp"

namespace loopegg {

// A variant of one site: in a network that was judged (a line of evidence.jsonl), or in one that was timed as well (an entry of "networks" in result.json).
struct SiteVariant {
    std::string run, model, target, stage;  // stage: judged, or timed
    std::string network, site, steps;       // network: the finalist, or the key of the verdict; steps: of the plan, or what the verdict says of the site
    bool allowed = true, chosen = false;
    std::string verdict;  // the guard's words
    std::optional<double> points, low, high;
    std::optional<double> ms, original_ms;  // of the whole network, and of the original, interleaved with it
    std::string why_not;                    // empty for what was chosen, and for what was only judged
};

std::vector<SiteVariant> variants_of(const FinishedRun& run);
std::string variants_csv(const std::vector<FinishedRun>& runs);

}  // namespace loopegg
