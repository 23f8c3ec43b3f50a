// The second stage: finds a fast schedule for each nest by measuring, guided by a model that learns as it goes.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/term.hpp"
#include "extract/measurer.hpp"

namespace loopegg {

struct TuneOptions {
    std::string target = "host";
    std::function<std::vector<Term>(const Term& nest)> starts{};   // the first schedules to try, most promising first
    int trials = 24;                  // candidates measured per nest on average: after the first round, more where more time can be gained
    int per_round = 6;
    // By a nest's place among them: how often the network runs it, and the place of the nest that it would stand for,
    // its own if for none. Without these: once each, for none.
    struct Role { double uses = 1; std::size_t instead_of = 0; };
    std::function<Role(std::size_t nest)> role{};
    int together = 24;                // candidates of one batch, of several nests: all cores compile, and what is timed takes turns
    double seconds = 1e9;             // of measuring, for all nests together; every nest gets its first round whatever this says
    // Exact rewritings near a schedule that turned out well (by the tune rules); may be empty.
    std::function<std::vector<Term>(const Term& nest, std::uint64_t seed)> neighbours{};
    // Times come later, and estimates until then: a nest of which something was only estimated is left as it is, for nothing was learnt.
    bool wait_for_times = false;
    std::uint64_t seed = 1;
};

struct TunedNest {
    Term nest;               // with the best schedule found; as given when nothing could be measured
    Measured best;           // why there is no latency, where there is none; an estimate only where no schedule was measured
    int tried = 0, failed = 0;
    std::vector<Term> also;  // the next best, by the same measurements; may be empty
    std::vector<double> after_round{};   // the best time so far, at the end of each round that it took part in, in milliseconds
};

// One answer per nest, in order. Equal nests are tuned once.
std::vector<TunedNest> tune(std::span<const Term> nests, Measurer& measurer, const TuneOptions& options, Progress& progress);

}  // namespace loopegg
