// What a user asks of a run.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace loopegg {

// How a run has networks trained (optimize/train).
struct TrainRequest {
    std::string command{};  // {} represents the folder of a network; empty: nothing is trained
    int budget = 8;         // training runs, that of the original included
    int jobs = 1;           // at once
    double seconds = 0;     // that one run may take; 0: as training_seconds() says
    std::filesystem::path folder{};
};

struct OptimizeRequest {
    std::filesystem::path model;
    std::filesystem::path out = "out";
    std::string rules = "discover";  // a name in rules/, or a file
    std::string target = "host";
    bool strict_fp = false;              // sums keep their order: no rule that rounds differently is used
    std::vector<std::string> allowed{};  // roundings (nest/term/rounding.hpp) that schedules may use
    double max_rounding_error = 0.01;    // how far these roundings may move an output, as a share of the largest output
    bool all_targets = false;            // extract and compile a network for every other target too
    std::string objective = "latency";   // objective.hpp
    std::string architecture = "auto";   // which class's rules to use: auto, all, or a class
    std::optional<double> points{};      // of accuracy that may be expected to be lost; none: as the rules say
    std::string data{};                  // for the guard; empty: seeded synthetic images
    std::filesystem::path trainings{};   // what the guard learns from (trainings.hpp); empty: nothing
    TrainRequest train{};
    std::int64_t batch = 1;
    std::uint64_t seed = 1;
    std::optional<int> finalists{};  // networks to time, unlike each other; without it as many as the search needs (find_networks.cpp)
    int trials = 18;                 // schedules measured per nest, on average
    double tune_seconds = 240;
    std::filesystem::path rounds{};            // the folder of the rounds that another machine measures; empty: unknown times are estimated
    int max_rounds = 6, round_programs = 300;  // rounds.hpp
    std::vector<std::string> keep{};
    int channels_multiple = 1;
    double max_latency_ms = std::numeric_limits<double>::infinity();
    double min_speedup = 0;  // over the tuned original, interleaved with the network; 0: none is asked for
    bool limits_time() const { return std::isfinite(max_latency_ms) || min_speedup > 0; }
    // The time that a network may take where the original takes `original_ms`.
    double allowed_ms(double original_ms) const { return min_speedup > 0 ? std::min(max_latency_ms, original_ms / min_speedup) : max_latency_ms; }
    double max_memory_mb = std::numeric_limits<double>::infinity();  // weights, and activations that are needed at once
    std::int64_t max_parameters = std::numeric_limits<std::int64_t>::max();
};

// The file of a rule set by name ("discover": in rules/), or the path itself.
std::filesystem::path rules_file(const std::string& rules);

}  // namespace loopegg
