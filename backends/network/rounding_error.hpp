// How far the outputs of a network whose schedules round operands are from those of float32, on given inputs, and which sites round within a limit.
#pragma once
#include <optional>
#include <set>
#include <span>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/network/network.hpp"

namespace loopegg {

// What a network is run on. Each of `inputs` has a tensor for every input of the graph.
struct JudgedInputs {
    std::vector<std::vector<Tensor>> inputs;
    std::vector<std::int64_t> labels{};  // of all images, in order; empty: not known
};

struct RoundingError {
    int sites = 0;                 // sites whose operands are rounded; where there are none, nothing is run
    int outputs = 0;               // first dimensions of the first output, summed over all inputs: one for each image
    int same_answer = 0;           // images whose largest output element stays the same one
    int lost = 0, won = 0;         // images that float32 alone, or the rounded network alone, answers right; without labels, every changed answer is lost
    double largest = 0, mean = 0;  // differences of elements, as shares of the largest element of the float32 output

    double points() const;       // of accuracy that are lost
    double uncertainty() const;  // nine of ten such sets of images would say points() within so much
};

struct RoundingLimits {
    double largest = 0.01;           // RoundingError::largest
    std::optional<double> points{};  // RoundingError::points(); none: not asked
    bool allow(const RoundingError& e) const { return e.largest <= largest && (!points || e.points() <= *points); }
};

struct SiteRounding {
    std::string kind;               // of numbers that the site's schedule rounds operands to
    std::optional<double> alone{};  // RoundingError::largest where this site alone is rounded; none where it has no int8 scales
    bool wide = false;              // it keeps float32
};

// Where all sites together would exceed the limits, the sites whose rounding alone moves outputs most keep float32.
struct RoundedSites {
    std::map<std::string, SiteRounding> sites;  // those whose schedules round
    RoundingError all, error;                   // with all of them rounded, and with those that are not wide
    std::set<std::string> wide() const;
    std::map<std::string, std::string> kinds() const;  // of those that round
};

// Schedules for this machine that round the operands of those sites, and only those, whose schedules round operands on the target.
Schedules rounded_here(const Graph& graph, const Schedules& schedules, const Target& target);

RoundedSites round_within(const RoundingLimits& limits, const ScheduledNetwork& network, const Target& target, const JudgedInputs& judged,
                          KernelCache& kernels);

// The schedules of a network in which these sites multiply float32 numbers. A site takes its schedule from `wide` where that has one and no value lies in
// blocks, and otherwise the default schedule for the values as they lie. Every site whose schedule rounds has an entry.
Schedules in_float32(const std::set<std::string>& sites, const Graph& graph, Schedules schedules, const Target& target, const Schedules& wide = {});

// Runs the network twice on this machine: in float32, and with the operands rounded that its schedules round on the target, by the same statements.
RoundingError rounding_error(const ScheduledNetwork& network, const Target& target, const JudgedInputs& judged, KernelCache& kernels);

}  // namespace loopegg
