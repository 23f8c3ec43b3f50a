// The times of whole networks, compiled side by side and measured interleaved.
#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "backends/kernel/kernel_cache.hpp"
#include "optimize/run/objective.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

// A network on its way to being measured.
struct Entrant {
    const Graph& graph;
    const Weights& weights;
    Schedules schedules;
    NetworkRecord record;
};

// Which times are stored. A figure that people are shown comes from a quiet machine. A time that only guides the search is stored even if the machine was busy.
// Then the next run takes the same way, and needs no time that the store does not have.
enum class Remember { quiet, all };

// The key of a stored time names the network and the networks that were timed with it. `make` compiles the networks where some time is not known.
std::vector<Measured> measure_interleaved(std::span<Entrant> entrants, const Target& target, Remember which, const std::function<void(Entrant&)>& make = {});

// The times of networks that only lead the search. They are compiled into a folder that goes.
std::vector<Measured> measure_in_scratch(const Run& run, std::span<Entrant> entrants, KernelCache& kernels, Progress* progress);

// The times of several networks, interleaved. Nothing is compiled where all times are known.
std::vector<Measured> time_interleaved(const Run& run, std::span<const std::pair<const Network*, const Schedules*>> networks);

// Where networks are compiled that are only tried.
std::filesystem::path trying_folder(const Run& run);

}  // namespace loopegg
