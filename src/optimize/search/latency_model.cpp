#include "optimize/search/latency_model.hpp"

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
constexpr double other_restriction = 1;       // how far a restricted site is from a whole one
constexpr double max_for_broken_vectors = 1;  // a site whose channels are no whole vectors takes at most twice as long

bool is_convolution(const Node& node) { return node.op == "conv2d"; }

std::string likeness(const Node& node) {
    if (!is_convolution(node)) return node.name;
    return fmt::format("{} stride {} on {} pixels", fmt::join(node.integers("kernel"), "x"), node.integers("stride")[0], node.shape[2] * node.shape[3]);
}

}  // namespace

LatencyModel::Timed LatencyModel::site_of(const Node& node, double ms) {
    const double work = std::max(1.0, static_cast<double>(macs(node))), written = static_cast<double>(element_count(node.shape));
    if (!is_convolution(node)) return {1, 1, 1, ms, work, written, false, false};
    return {static_cast<double>(node.input_shapes[0][1]),
            static_cast<double>(node.shape[1]),
            static_cast<double>(node.integer("groups")),
            ms,
            work,
            written,
            !node.domain.whole(),
            true};
}

LatencyModel::Prediction LatencyModel::by_neighbours(const Timed& site, const std::vector<Timed>& timed) {
    double said = 0, weights = 0, nearest = 0;
    for (const Timed& t : timed) {
        const double apart = std::abs(std::log(site.inputs / t.inputs)) + std::abs(std::log(site.outputs / t.outputs)) +
                             std::abs(std::log(site.groups / t.groups)) + (site.restricted != t.restricted ? other_restriction : 0);
        const double near = std::exp(-apart / fades), weight = near + 1e-12;  // a site that is far from all timed sites still gets a weighted mean
        said += weight * t.ms * (work_part * site.macs / t.macs + (1 - work_part) * site.written / t.written);
        weights += weight;
        nearest = std::max(nearest, near);
    }
    return {said / weights, 1 - nearest};
}

void LatencyModel::learn(const Graph& network, const std::map<std::string, double>& ms) {
    std::vector<std::pair<std::string, Timed>> learned;
    for (const Node& node : network.nodes)
        if (const auto it = ms.find(node.name); it != ms.end()) learned.emplace_back(likeness(node), site_of(node, it->second));
    for (const auto& [kind, site] : learned)
        if (const auto known = alike_.find(kind); known != alike_.end() && site.ms > 0) {
            const Prediction p = by_neighbours(site, known->second);
            too_short_ += site.ms * p.news * std::log(site.ms / p.ms), new_ += site.ms * p.news * p.news;
        }
    for (const auto& [kind, site] : learned) {
        std::vector<Timed>& alike = alike_[kind];
        std::erase_if(alike, [&](const Timed& t) {
            return t.inputs == site.inputs && t.outputs == site.outputs && t.groups == site.groups && t.macs == site.macs && t.restricted == site.restricted;
        });
        alike.push_back(site);  // the latest counts
    }
}

bool LatencyModel::on_whole_vectors(const Node& node) const {
    return !is_convolution(node) || (node.input_shapes[0][1] % lanes_ == 0 && node.shape[1] % lanes_ == 0);
}

// The price of broken vectors is the one by which the sums of all timed networks are most alike to their times.
void LatencyModel::learn_networks(std::span<const std::pair<const Graph*, double>> networks) {
    struct Sum {
        double whole = 0, broken = 0, ms = 0;
    };
    std::vector<Sum> sums;
    for (const auto& [network, ms] : networks) {
        Sum sum{0, 0, ms};
        for (const Node& node : network->nodes) (on_whole_vectors(node) ? sum.whole : sum.broken) += alone_ms(node);
        if (sum.whole + sum.broken > 0 && ms > 0) sums.push_back(sum);
    }
    if (sums.empty()) return;
    double least = 1e300;
    for (double price = 0; price <= max_for_broken_vectors; price += 0.02) {
        double mean = 0, squares = 0;
        for (const Sum& s : sums) mean += std::log(s.ms / (s.whole + (1 + price) * s.broken)) / static_cast<double>(sums.size());
        for (const Sum& s : sums) squares += std::pow(std::log(s.ms / (s.whole + (1 + price) * s.broken)) - mean, 2);
        if (squares >= least - 1e-6) continue;
        least = squares, broken_vectors_ = price, in_network_ = std::exp(mean);
    }
}

// A site of a kind that was never timed takes as long for its work as the timed sites do on average: convolutions where it is one.
double LatencyModel::of_another_kind(const Node& node) const {
    double ms[2] = {}, work[2] = {};
    for (const auto& [kind, timed] : alike_)
        for (const Timed& t : timed) ms[t.convolution] += t.ms, work[t.convolution] += t.macs;
    const bool by_all = work[is_convolution(node)] == 0;
    const double rate = by_all ? (ms[0] + ms[1]) / (work[0] + work[1]) : ms[is_convolution(node)] / work[is_convolution(node)];
    return rate * static_cast<double>(macs(node));
}

double LatencyModel::alone_ms(const Node& node) const {
    if (!is_site(node) || alike_.empty()) return 0;
    const auto found = alike_.find(likeness(node));
    if (found == alike_.end()) return of_another_kind(node);
    const Prediction p = by_neighbours(site_of(node, 0), found->second);
    return new_ > 0 ? p.ms * std::exp(p.news * too_short_ / new_) : p.ms;
}

double LatencyModel::site_ms(const Node& node) const { return alone_ms(node) * in_network_ * (on_whole_vectors(node) ? 1 : 1 + broken_vectors_); }

double LatencyModel::ms(const Graph& network) const {
    double sum = 0;
    for (const Node& node : network.nodes) sum += site_ms(node);
    return sum;
}

}  // namespace loopegg
