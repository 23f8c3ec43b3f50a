// Counts what many runs did: which sequences were chosen, where in a network, on which target, and what each gained and cost.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/run.hpp"

namespace loopegg {

// Whether a sequence has a name: the paper's S1 to S3, a change people know (group, bottleneck, narrower, dropped), or none.
enum class Fame { dense, paper, known, unnamed };
Fame fame_of(const std::string& sequence);
const char* to_string(Fame fame);

// A sequence as a study counts it: its name, or the steps themselves when nobody has named it.
std::string label_of(const SiteResult& site);

// One site of one run.
struct StudySite {
    std::string run, model, architecture, target, site, op, shape, label, key;
    std::int64_t seed = 0;
    int depth = 0;  // 0 early, 1 middle, 2 late third of the network
    Fame fame = Fame::dense;
    double before_ms = 0, after_ms = 0, macs_kept = 1;
    bool measured = true;
};

// Everything that was chosen under one label.
struct SequenceCount {
    std::string label;
    Fame fame = Fame::dense;
    int sites = 0;
    std::map<std::string, int> by_target, by_model, by_shape;
    std::array<int, 3> by_depth{};
    double saved_ms = 0;            // summed over its sites
    std::optional<double> speedup;  // geometric mean over its sites; none where none of them is computed any more
    double macs_kept = 1;           // the share of the multiply-accumulates that its sites keep
    int estimated = 0;              // sites whose times are estimates
};

// How often a step was taken with which parameters. A step over the network counts at each site that it took something from.
struct StepCount {
    std::string rule, kind, parameters;  // "?a=co ?b=ci ?g=4"
    int times = 0;
    std::array<int, 3> by_depth{};
    std::map<std::string, int> by_target, by_shape;
};

struct Study {
    std::vector<std::string> runs, targets, models;
    bool sample = false;
    std::vector<StudySite> sites;
    std::vector<SequenceCount> sequences;  // most frequent first, dense last
    std::vector<StepCount> steps;          // most frequent first
    std::map<std::string, std::int64_t> rules_fired;
    std::vector<std::string> never_fired;                // rules that some run knew and that fired in none
    int changed = 0, paper = 0, known = 0, unnamed = 0;  // sites
};

Study study_runs(const std::vector<FinishedRun>& runs);

nlohmann::json to_json(const Study& study);
std::string sites_csv(const Study& study);
std::string sequences_csv(const Study& study);
std::string steps_csv(const Study& study);

// Pictures for a text (SVG), and a page with the same plots to hover over (needs the plotting library).
std::string frequency_svg(const Study& study);  // after the paper's Figure 5: how often each sequence was chosen, by target
std::string depth_svg(const Study& study);      // where in the network
std::string study_page(const Study& study);

// Every variant of a site that runs judged or timed, as one table: what was changed, what the guard said, how long it took, and why it was not chosen.

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
