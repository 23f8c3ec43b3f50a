#include "optimize/answer/rounding_guard.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

namespace loopegg {
namespace {

std::string in_words(const Precision& precision, const OptimizeRequest& request, const std::string& data) {
    const auto& [sites, left] = precision;
    const RoundingError& e = sites.error;
    std::string why =
        fmt::format("{} of {} sites multiply rounded numbers ({}), the others float32: ", e.sites, sites.sites.size(), join(request.allowed, ", "));
    if (e.sites == 0)
        why += fmt::format("with all rounded, outputs would be {:.2g} of the largest one away from float32's ({}), and {:.2g} is allowed", sites.all.largest,
                           data, request.max_rounding_error);
    else
        why += fmt::format(
            "outputs are at most {:.2g} of the largest one away from float32's on {} inputs ({}), and {:.2g} is allowed; {} of {} give the same answer",
            e.largest, e.outputs, data, request.max_rounding_error, e.same_answer, e.outputs);
    const RoundingError& counted = e.sites == 0 ? sites.all : e;
    if (left)
        why += fmt::format("; {:.2f} points are lost ({:.2f} to {:.2f}), and {:.2f} are left", counted.points(), counted.points() - counted.uncertainty(),
                           counted.points() + counted.uncertainty(), *left);
    return why;
}

}  // namespace

bool Precision::rounds(const std::string& site) const {
    const auto found = sites.sites.find(site);
    return found != sites.sites.end() && !found->second.wide;
}

bool counts_points(const Run& run) { return !run.target.allowed.empty() && run.read.trained && run.read.rounding.images; }

Precision choose_precision(const Run& run, const ScheduledNetwork& network, double lost, KernelCache& kernels) {
    Precision precision;
    if (run.target.allowed.empty()) return precision;
    if (counts_points(run)) precision.left = std::max(0.0, run.loss_budget - lost);
    precision.sites = round_within({run.request.max_rounding_error, precision.left}, network, run.target, run.read.rounding.judged, kernels);
    return precision;
}

double points_of_rounding(const Run& run) {
    KernelCache kernels{run.pool};
    const Network& network = run.read.network;
    return std::clamp(choose_precision(run, {network.graph, network.weights, {}}, 0, kernels).sites.error.points(), 0.0, run.loss_budget);
}

nlohmann::json rounding_evidence(const Run& run, const ScheduledNetwork& network, Precision precision, KernelCache& kernels) {
    RoundedSites& sites = precision.sites;
    if (sites.sites.empty()) return nullptr;
    std::set<std::string> rounded;
    for (const auto& [site, nest] : rounded_here(network.graph, network.schedules, run.target)) rounded.insert(site);
    if (static_cast<int>(rounded.size()) != sites.error.sites) {  // a layout of values made a float32 schedule faster
        for (auto& [site, r] : sites.sites) r.wide = !rounded.contains(site);
        sites.error = rounding_error(network, run.target, run.read.rounding.judged, kernels);
    }
    const RoundingData& data = run.read.rounding;
    nlohmann::json j = rounding_json(sites);
    j["roundings"] = run.request.allowed, j["limit"] = run.request.max_rounding_error, j["data"] = data.source;
    if (precision.left)
        j["points"] = {{"lost", sites.error.points()}, {"within", sites.error.uncertainty()}, {"allowed", *precision.left}, {"of", run.loss_budget}};
    j["why"] = in_words(precision, run.request, data.source);
    return j;
}

}  // namespace loopegg
