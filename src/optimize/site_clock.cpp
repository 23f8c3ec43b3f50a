#include "optimize/site_clock.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/flops.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

constexpr double work_part = 0.9;  // the part of a site's time that is proportional to its work; the rest is proportional to what the site writes
// How fast the weight of a timed site falls with its distance in the logarithm of channels: a site whose width differs by an eighth counts about half. The
// time of one site is noisy, and a search that trusted the nearest site alone would look for sites whose neighbour was timed at a lucky moment.
constexpr double fades = 0.2;

bool is_convolution(const Node& node) { return node.op == "conv2d"; }

std::string likeness(const Node& node) {
    if (!is_convolution(node)) return node.name;
    return fmt::format("{} stride {} on {} pixels", fmt::join(node.integers("kernel"), "x"), node.integers("stride")[0], node.shape[2] * node.shape[3]);
}

}  // namespace

SiteClock::Timed SiteClock::site_of(const Graph& network, const Node& node, double ms) {
    const double work = std::max(1.0, static_cast<double>(macs(node))), written = static_cast<double>(element_count(node.shape));
    if (!is_convolution(node)) return {work, 1, 1, ms, work, written};
    return {static_cast<double>(network.shape_of(node.inputs[0])[1]),
            static_cast<double>(node.shape[1]),
            static_cast<double>(node.integer("groups")),
            ms,
            work,
            written};
}

SiteClock::Estimate SiteClock::by_neighbours(const Timed& site, const std::vector<Timed>& timed) {
    double said = 0, weights = 0, nearest = 0;
    for (const Timed& t : timed) {
        const double apart =
            std::abs(std::log(site.inputs / t.inputs)) + std::abs(std::log(site.outputs / t.outputs)) + std::abs(std::log(site.groups / t.groups));
        const double near = std::exp(-apart / fades), weight = near + 1e-12;  // a site that is far from all timed sites still gets a weighted mean
        said += weight * t.ms * (work_part * site.macs / t.macs + (1 - work_part) * site.written / t.written);
        weights += weight;
        nearest = std::max(nearest, near);
    }
    return {said / weights, 1 - nearest};
}

void SiteClock::learn(const Graph& network, const std::map<std::string, double>& ms) {
    std::vector<std::pair<std::string, Timed>> learned;
    for (const Node& node : network.nodes)
        if (const auto it = ms.find(node.name); it != ms.end()) learned.emplace_back(likeness(node), site_of(network, node, it->second));
    for (const auto& [kind, site] : learned)
        if (const auto known = alike_.find(kind); known != alike_.end() && site.ms > 0) {
            const Estimate e = by_neighbours(site, known->second);
            too_short_ += site.ms * e.news * std::log(site.ms / e.ms), new_ += site.ms * e.news * e.news;
        }
    for (const auto& [kind, site] : learned) {
        std::vector<Timed>& alike = alike_[kind];
        std::erase_if(alike, [&](const Timed& t) { return t.inputs == site.inputs && t.outputs == site.outputs && t.groups == site.groups; });
        alike.push_back(site);  // the latest counts
    }
}

void SiteClock::learn_whole(std::span<const std::pair<const Graph*, double>> networks) {
    wholes_.clear();
    for (const auto& [network, ms] : networks)
        if (const double sites = sites_ms(*network); sites > 0 && ms > 0) wholes_.push_back({sites, on_whole_vectors(*network), ms});
}

double SiteClock::on_whole_vectors(const Graph& network) const {
    double all = 0, whole = 0;
    for (const Node& node : network.nodes) {
        if (!is_convolution(node)) continue;
        const auto work = static_cast<double>(macs(node));
        all += work;
        if (network.shape_of(node.inputs[0])[1] % lanes_ == 0 && node.shape[1] % lanes_ == 0) whole += work;
    }
    return all > 0 ? whole / all : 1;
}

double SiteClock::ms(const Graph& network) const {
    const double sites = sites_ms(network);
    if (sites <= 0) return 0;
    const double whole = on_whole_vectors(network);
    double said = 0, weights = 0;
    for (const Whole& w : wholes_) {
        const double weight = std::exp(-(std::abs(std::log(sites / w.sites_ms)) + std::abs(whole - w.on_whole_vectors)) / fades) + 1e-12;
        said += weight * std::log(w.ms / w.sites_ms), weights += weight;
    }
    return weights > 0 ? sites * std::exp(said / weights) : sites;
}

double SiteClock::sites_ms(const Graph& network) const {
    double sum = 0;
    for (const Node& node : network.nodes) {
        const auto found = alike_.find(likeness(node));
        if (found == alike_.end()) continue;
        const Estimate e = by_neighbours(site_of(network, node, 0), found->second);
        sum += new_ > 0 ? e.ms * std::exp(e.news * too_short_ / new_) : e.ms;
    }
    return sum;
}

}  // namespace loopegg
