// The guard of roundings that a user allows. It measures, on data, how far these roundings move the outputs of a network from those of float32, and picks the
// sites that round.
#pragma once
#include <nlohmann/json.hpp>

#include "backends/network/rounding_error.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

// In what precision the sites of a network run.
struct Precision {
    RoundedSites sites;
    std::optional<double> left{};  // points of accuracy that rounding was allowed to lose; none where no accuracy is known

    bool rounds(const std::string& site) const;
};

// Of the points that may be lost, the network itself is expected to lose `lost`. Rounding may lose the rest.
Precision choose_precision(const Run& run, const ScheduledNetwork& network, double lost, KernelCache& kernels);

// Whether roundings may lose points that are known: of trained weights, on the user's images.
bool counts_points(const Run& run);

// The points that rounding loses of the original, by default schedules. The search leaves so many to the network that it finds.
double points_of_rounding(const Run& run);

// The evidence for result.json, of the schedules that were made with this precision: `largest` and `mean` error as shares of the largest output, the limits,
// the precision of each site, how many images gave the same answer, and the data. Null where no schedule may round.
nlohmann::json rounding_evidence(const Run& run, const ScheduledNetwork& network, Precision precision, KernelCache& kernels);

}  // namespace loopegg
