// What every stage of a run works with. It is made once, and stages add nothing to it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/network/network.hpp"
#include "base/progress.hpp"
#include "extract/measurer.hpp"
#include "fisher/importance.hpp"
#include "fisher/oracle.hpp"
#include "graph/carry_weights.hpp"
#include "graph/graph.hpp"
#include "optimize/run/request.hpp"
#include "optimize/run/rounding_data.hpp"
#include "optimize/run/sites.hpp"
#include "optimize/run/trainings.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct Network {
    Graph graph;
    Weights weights;
    Sites sites;
};

// The network as read.
struct ReadNetwork {
    Network network;
    bool trained = false;  // the model has weights of its own; without them, they are drawn from the seed
    Trainings trainings{};
    Importance importance{};  // which channels stay where a network made from this one is narrower
    RoundingData rounding{};  // what the roundings that a user allows are judged on
    // The weights of a network that was made from this one, with its own scales of int8 numbers where these are allowed.
    Weights carried_to(const Graph& graph, std::uint64_t seed) const;
};

// How a run learns how long nests and networks take on its target.
struct Timing {
    Measurer& nests;
    // Times whole networks, where the target does not run them as this machine does. `last`: the answer of the run depends on this time. Where the function
    // is empty, networks are compiled and timed here, side by side.
    std::function<Measured(const Graph& graph, const Weights& weights, const Schedules& schedules, bool last)> network{};
};

class NetworkTraining;

struct Run {
    OptimizeRequest request;
    Target target;  // with the rules of the run
    RuleBook book;  // of the rule file, without sets that are meant for other classes of networks
    ReadNetwork read;
    std::vector<MeasureCondition> conditions;  // of the returned network, and of each step whose rule says (capacity)
    double points;                             // of accuracy that a search looks as far as: those that the conditions allow
    Oracle* oracle;
    Timing timing;
    KernelPool pool;  // the kernels that tuning compiled
    Progress& progress;
    NetworkTraining* training = nullptr;  // of networks that the search finds; null: none is trained (train/train_networks.hpp)
    double loss_budget = 0;               // points that the network and its roundings may lose together
};

// How much work goes into the schedules of a network.
struct Effort {
    double seconds = 0;
    int trials = 0;  // schedules of a nest, on average
    Effort share(double part) const { return {seconds * part, trials}; }
};

ReadNetwork read_network(const OptimizeRequest& request);

// The rules of a file for a network: without sets that are meant for other classes. `architecture`: auto, all, or the name of a class.
RuleBook rules_for(const OptimizeRequest& request, const Graph& graph);

// How the oracle of a run judges: the conditions of the rule file's networks, with the user's data, weights and points. `read` must outlive the oracle, which
// takes its weights.
OracleOptions oracle_options(const OptimizeRequest& request, const ReadNetwork& read, const RuleBook& book);

// A time as every file of a run writes it (docs/reference/formats.md).
nlohmann::json latency_json(const Measured& m);

}  // namespace loopegg
