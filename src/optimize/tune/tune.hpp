// The second stage: finds a fast schedule for each nest by measuring, guided by a model that learns as it goes.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/term.hpp"
#include "extract/measurer.hpp"

namespace loopegg {

struct TuneOptions {
    std::string target = "host";
    std::function<std::vector<Term>(const Term& nest)> starts{};  // the first schedules to try, most promising first
    std::function<void(std::span<const Term> nests)> prepare{};   // called once with all nests, before `starts`: works on all cores
    int trials = 24;  // candidates measured per nest on average: after the first round, nests that can gain more time get more
    int per_round = 6;
    // For a nest, by its place among the nests: how often the network runs it, and the place of the nest that it would replace. A nest that replaces none
    // has its own place here. `needed`: the nest gets one trial even when time is up in the first round. Where `role` is empty, each nest runs once, replaces
    // none and is needed.
    struct Role {
        double uses = 1;
        std::size_t instead_of = 0;
        bool needed = true;
    };
    std::function<Role(std::size_t nest)> role{};
    int together = 24;     // candidates of one batch, of several nests: all cores compile, and the candidates are timed interleaved
    double seconds = 1e9;  // of measuring, for all nests together
    // Gives nests near a schedule that turned out well, by the rules of the phase 'vary'. The function may be empty.
    std::function<std::vector<Term>(const Term& nest, std::uint64_t seed)> neighbours{};
    // Times come later, and estimates replace them until then. A nest with an estimated candidate gets no further round, because nothing was learnt.
    bool wait_for_times = false;
    std::uint64_t seed = 1;
};

struct TunedNest {
    Term nest;      // with the best schedule found; as given when nothing could be measured
    Measured best;  // or the reason why there is no latency; an estimate only where no schedule was measured
    int tried = 0, failed = 0;
    std::vector<Term> also;             // the next best, by the same measurements; may be empty
    std::optional<Term> wide{};         // the best of those that do not round operands
    std::vector<double> after_round{};  // the best time so far, at the end of each round that the nest took part in, in milliseconds
};

// One answer per nest, in order. Equal nests are tuned once.
std::vector<TunedNest> tune(std::span<const Term> nests, Measurer& measurer, const TuneOptions& options, Progress& progress);

}  // namespace loopegg
