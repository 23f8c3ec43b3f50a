// The schedules of a network: how they are found, and what is known of their times.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/kernel/kernel_cache.hpp"
#include "optimize/run/run.hpp"
#include "optimize/tune/tune.hpp"

namespace loopegg {

// For each kind of site, the best schedule that was found.
struct Tuning {
    std::vector<TunedNest> best;  // by Sites::kinds
    int compiled = 0, failed = 0;
};

// The fastest row of nests (algorithms.hpp) for each kind of statement (statement_kind.hpp).
using RowChoices = std::map<std::string, Term>;

// What every tuning of a run has in common: schedules by the rules of the target, with at most so many trials of a nest.
TuneOptions tune_options(const Run& run, const Effort& effort);

// Tunes each nest of a network as it will run there, with everything fused into it. `rows`: what earlier tunings chose for statements that differ in their
// channels alone; this tuning adds its own choices.
Tuning tune_network(const Run& run, const Network& network, const Effort& effort, RowChoices& rows);

// By site, the time of its nest with its best schedule; a site that was not timed has no entry.
std::map<std::string, double> site_times(const Sites& sites, const Tuning& tuning);

// The schedules that tuning found best, with values in blocks of channels where that pays.
Schedules best_schedules(const Run& run, const Network& network, const Tuning& tuning, const Effort& effort);

// Picks for each site the schedule that is fastest inside the network, among those that tuning found best and the default schedules. Each schedule is
// compiled into the network, in folders inside `scratch`, and its steps are timed there. A site without an entry runs best with its default schedule.
Schedules fastest_in_network(const Run& run, const Network& network, const Tuning& tuning, const std::filesystem::path& scratch, KernelCache& kernels);

// The schedules with the fastest nest that computes each chain of the network block by block. The nests are timed by themselves; whether the network is faster
// with them is for the caller to find out.
Schedules with_blocks(const Run& run, const Graph& graph, Schedules schedules);

}  // namespace loopegg
