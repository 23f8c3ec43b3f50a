// The stage that takes networks out of the e-graph: extract, tune what was extracted, learn its times, and extract again.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "nest/plan/plan.hpp"
#include "network/derivation.hpp"
#include "optimize/run/run.hpp"
#include "optimize/search/judge_networks.hpp"
#include "optimize/tune/tuning.hpp"

namespace loopegg {

// What a network reached in training.
struct TrainedLoss {
    Trained runs;
    double lost = 0;           // points, compared with the original by the same recipe
    ExpectedLoss predicted{};  // before its first training
};

// A network that was extracted.
struct FoundNetwork {
    std::string name;  // "front-1"
    Network network;   // with the weights carried over
    Derivation derivation;
    Plan plan;
    NetworkVerdict judged;
    double predicted_ms = 0;  // before it was tuned
    Tuning tuning{};
    Schedules schedules{};
    Measured time{};  // of the whole network, interleaved with the original
    FrontPoint point{};
    std::optional<TrainedLoss> trained{};
};

// One network of the front, by the latency model and by the guard.
struct FrontRow {
    double ms = 0;
    NetworkVerdict judged;  // without a verdict where the guard predicted the loss from sizes alone
    std::int64_t parameters = 0, macs = 0;
};

// How the e-graph of the network grew.
struct Growth {
    std::string stop;
    std::size_t nodes = 0, classes = 0, edges = 0;
    double seconds = 0;
    std::map<std::string, std::size_t> rules_fired{};
};

struct FoundNetworks {
    Tuning original_tuning;
    Schedules original_schedules;
    Measured original;  // interleaved with `timed`
    std::vector<FoundNetwork> timed;
    std::optional<std::size_t> best;  // into `timed`; none: the original
    std::vector<FrontRow> front;      // of the last extraction, the fastest first
    double gap = 0;                   // by how many points the front may be above the best one (network/front.hpp)
    Growth growth;
    std::int64_t asked = 0, rejected = 0;  // questions to the guard
    Trainings trainings{};                 // what the guard had learned from when it gave the verdicts above
};

// `best` of a rule file without a phase 'networks' is none: the network stays as it is.
FoundNetworks find_networks(const Run& run);

// result.json's "front" and "networks".
nlohmann::json front_json(const FoundNetworks& found);
nlohmann::json networks_json(const FoundNetworks& found);

}  // namespace loopegg
