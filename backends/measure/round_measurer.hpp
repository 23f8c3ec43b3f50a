// Times on a machine that is reached in rounds. The measurer gives the times that are known, estimates the rest, and remembers what the next round should
// measure.
//
// An estimate is marked as such. It is scaled by the ratio of measured to estimated times of the same nest, or of all nests where no time of that nest is
// known.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/measure/latency_store.hpp"
#include "backends/network/network.hpp"
#include "extract/measurer.hpp"

namespace loopegg {

class RoundMeasurer : public Measurer {
public:
    // `failed` has, by key, the programs that failed in earlier rounds, and why. They are not asked for again.
    RoundMeasurer(Target target, const StoreAddress& store, std::map<Hash128, std::string> failed = {});

    std::vector<Measured> measure(std::span<const Candidate> candidates) override;

    // The time of a whole network: the measured time where there is one, else the sum over its nests. With `last`, the run's answer depends on this network,
    // so it goes first.
    enum class Use { candidate, last };
    Measured network(const Graph& graph, const Weights& weights, const Schedules& schedules, Use use);

    struct WantedNetwork {
        Graph graph;
        Weights weights;
        Schedules schedules;
        Use use;
        Hash128 key;
    };
    struct Pending {
        std::vector<Term> nests;
        std::vector<WantedNetwork> networks;
        bool empty() const { return nests.empty() && networks.empty(); }
    };
    // What was estimated and would be better measured: the first schedule of every nest that was asked about, then the second ones, and so on.
    Pending wanted(std::size_t max_nests) const;

    struct Counts {
        int measured = 0, estimated = 0, failed = 0;
    };  // of the nests that were asked about, each schedule once
    const Counts& counts() const { return counts_; }

private:
    struct Ratio {
        double logarithms = 0;
        int count = 0;
        void add(double ratio);
        double mean() const;
    };
    struct Want {
        Term nest;
        std::size_t rank = 0;  // how many schedules of the same nest are before this one
    };
    std::optional<Measured> known(const Hash128& key);
    Measured estimated(const Term& nest) const;
    double seen_ms(const Term& nest);  // the time of a nest inside a network; this does not ask the next round for the nest
    void learn(const Term& nest, double ms);

    Target target_;
    LatencyStore store_;
    std::map<Hash128, std::string> failed_;
    std::map<Hash128, Measured> asked_;               // what the store said before, so that a run gets one answer to one question
    std::unordered_map<std::string, Ratio> of_nest_;  // measured divided by estimated, by nest without its schedule
    Ratio of_all_, of_networks_;
    std::vector<Want> wanted_;
    std::unordered_map<std::string, std::size_t> ranks_;
    std::vector<WantedNetwork> networks_;
    std::map<Hash128, bool> seen_;  // schedules that were counted, and wanted where their time is unknown
    Counts counts_;
};

}  // namespace loopegg
