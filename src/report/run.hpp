// The folder of one run as values: what result.json, sequences.json and evidence.jsonl hold (docs/reference/formats.md), read for people.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "extract/measurer.hpp"

namespace loopegg {

Latency latency_from_json(const nlohmann::json& j);
nlohmann::json to_json(const Latency& latency);

// A guard's answer with its interval. `threshold` holds the least ratio that the guard allows, or a lower and an upper limit, or nothing.
struct GuardResult {
    std::string name, why;
    bool allowed = false;
    double ratio = 1, low = 1, high = 1;
    std::optional<double> points{};  // of accuracy that are expected to be lost
    double points_low = 0, points_high = 0;
    std::vector<double> threshold;
    int seeds = 0;
};

struct StepTaken {
    std::string rule, kind;                   // kind: exact or neural
    std::map<std::string, std::string> with;  // "?g" -> "4"
    std::optional<int> part;                  // of a cut domain
    std::string before, after, evidence;

    // "group-axes ?a=co ?b=ci ?g=4 (part 1)"
    std::string text() const;
    // "group co with ci in 4 blocks". A rule without such words is described by its parameters.
    std::string words() const;
};

// A neural step over the whole network, with the guard's answer about this step alone.
struct NetworkChange {
    StepTaken step;
    std::vector<std::string> sites;  // that lose outputs, or are left out
    std::optional<GuardResult> guard;

    std::string title() const;  // "narrow-stream ?w=48 at layer1.0.conv2 and 5 more"
};

struct SiteResult {
    std::string name, op, statement, variant, sequence, key;
    std::vector<std::int64_t> shape;
    std::vector<std::string> steps;
    std::vector<StepTaken> proof;  // from sequences.json: steps over the network that took something from the site, then those of its nest
    Latency original_latency, latency;
    std::int64_t macs = 0, original_macs = 0, parameters = 0;
    std::string nest_before, nest_after, pseudo_before, pseudo_after;
    std::string precision{};                 // of the numbers that it multiplies, "bf16"; empty: the run allowed float32 alone
    std::optional<double> rounding_alone{};  // how far outputs move if it alone is rounded, as a share of the largest one
    std::optional<double> error_bound, error_measured;
    std::string nest_restoring, pseudo_restoring;  // the second nest of a site whose channels a convolution brings back

    bool changed() const { return !sequence.empty() && sequence != "dense"; }
    bool dropped() const { return sequence == "dropped"; }  // it is not computed, and its latency is none
};

struct ParetoPoint {
    double latency_ms = 0, points = 0;  // points of accuracy that are expected to be lost
    std::int64_t parameters = 0, macs = 0;
    bool chosen = false, measured = false, allowed = true;
};

struct Evidence {
    std::string key, oracle, site, domain, why;
    bool allowed = false;
    double ratio = 1, low = 1, high = 1, seconds = 0;
};

struct Whole {
    Latency latency;
    std::int64_t parameters = 0, macs = 0;
};

struct FinishedRun {
    std::filesystem::path folder;
    nlohmann::json result;  // as it was read, for keys that have no member here
    std::string model, architecture, target, rules, returned, why, date, version;
    bool sample = false;  // numbers made for tests, not measured
    std::int64_t batch = 1, seed = 0;
    Whole original, optimized;
    double speedup = 1, speedup_low = 1, speedup_high = 1;
    GuardResult guard;
    std::vector<SiteResult> sites;
    std::vector<NetworkChange> steps;  // neural ones, in order
    std::vector<ParetoPoint> pareto;
    std::vector<Evidence> evidence;
    std::int64_t configurations = 0, rejected = 0;
    std::map<std::string, std::int64_t> rules_fired;
    std::vector<std::pair<std::string, double>> stages;  // in the order of the pipeline, without the total
    double total_seconds = 0;

    int changed_sites() const;
    bool gained() const { return returned != "original"; }
};

// Throws UserError that names the file and what is wrong with it. sequences.json and evidence.jsonl may be absent.
FinishedRun read_run(const std::filesystem::path& folder);

}  // namespace loopegg
