#include "optimize/run/objective.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/measure/sensors.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace loopegg {

const std::vector<std::string>& objective_names() {
    static const std::vector<std::string> names{"latency", "p99", "throughput", "energy", "memory", "compile"};
    return names;
}

Objective objective_for(const std::string& name, const Target& target) {
    const auto& names = objective_names();
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end())
        throw UserError(Diagnostic{fmt::format("'{}' is no objective: expected {}", name, join(names, ", ")), {}, did_you_mean(name, names)});
    const auto objective = static_cast<Objective>(it - names.begin());
    const bool runs = objective == Objective::p99 || objective == Objective::throughput || objective == Objective::energy;
    if (runs && target.reach != Reach::here)
        throw UserError(
            fmt::format("--objective {} needs a target that runs on this machine, and '{}' does not: choose latency, memory or compile", name, target.name));
    if (objective == Objective::energy && Sensors{}.energy().empty())
        throw UserError(Diagnostic{"--objective energy: this machine reports no energy",
                                   {},
                                   "it would be read from /sys/class/powercap/intel-rapl:0/energy_uj, which is absent or for root alone"});
    return objective;
}

std::optional<double> figure_of(Objective objective, const NetworkRecord& n) {
    switch (objective) {
        case Objective::latency: return n.time.latency ? std::optional(n.time.latency->median_ms) : std::nullopt;
        case Objective::p99: return n.profile ? std::optional(n.profile->p99_ms) : std::nullopt;
        case Objective::throughput: return n.profile ? std::optional(-n.profile->throughput_per_s) : std::nullopt;
        case Objective::energy: return n.profile ? n.profile->energy_j : std::nullopt;
        case Objective::memory: return static_cast<double>(n.files.arena_bytes + n.files.weight_bytes);
        case Objective::compile: return n.files.seconds;
    }
    throw InternalFault("an objective without a figure");
}

std::string figure_words(Objective objective, const NetworkRecord& n) {
    const auto figure = figure_of(objective, n);
    if (!figure) return "no figure";
    switch (objective) {
        case Objective::latency: return fmt::format("{:.3f} ms", *figure);
        case Objective::p99: return fmt::format("a p99 of {:.3f} ms", *figure);
        case Objective::throughput: return fmt::format("{:.1f} inputs a second", -*figure);
        case Objective::energy: return fmt::format("{:.4f} J an inference", *figure);
        case Objective::memory: return fmt::format("{:.2f} MB of weights and activations", *figure / 1e6);
        case Objective::compile: return fmt::format("{:.1f} s to compile", *figure);
    }
    throw InternalFault("an objective without words");
}

}  // namespace loopegg
