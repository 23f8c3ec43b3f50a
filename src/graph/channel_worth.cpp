#include "graph/channel_worth.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include "graph/drop_branch.hpp"

namespace loopegg {
namespace {

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// What the batch norm that reads a site does to each channel; empty where none does.
std::vector<double> scales_after(const Graph& graph, const Weights& weights, const std::string& site) {
    for (const Node& node : graph.nodes)
        if (node.op == "batch_norm" && node.inputs[0] == site) {
            const auto scale = weights.find(node.name + ".weight"), variance = weights.find(node.name + ".running_var");
            if (scale == weights.end() || variance == weights.end()) break;
            std::vector<double> out;
            for (std::size_t c = 0; c < scale->second.values.size(); ++c)
                out.push_back(std::abs(double{scale->second.values[c]}) / std::sqrt(double{variance->second.values[c]} + node.real("eps")));
            return out;
        }
    return {};
}

std::vector<double> summed(const SiteScores& scores, const Stream& stream) {
    std::vector<double> sums;
    for (const std::string& writer : stream.writers) {
        const auto own = scores.find(writer);
        if (own == scores.end() || static_cast<std::int64_t>(own->second.size()) != stream.width) continue;
        sums.resize(own->second.size());
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += own->second[c];
    }
    return sums;
}

// The channels of a stream that are left, as the first of its writers that is left tells; none where no writer is.
const std::vector<std::int64_t>* left_of(const Stream& stream, const std::map<std::string, ChannelMap>& maps) {
    for (const std::string& writer : stream.writers)
        if (const auto found = maps.find(writer); found != maps.end() && !found->second.outputs.empty()) return &found->second.outputs;
    return nullptr;
}

double kept_of_branches(const Graph& from, const SiteScores& scores, const Graph& to) {
    double whole = 0, left = 0;
    for (const Branch& b : branches_of(from))
        if (const auto own = scores.find(b.site); own != scores.end()) {
            whole += sum_of(own->second);
            if (to.find(b.site)) left += sum_of(own->second);
        }
    return whole > 0 ? left / whole : 1.0;
}

}  // namespace

SiteScores weight_magnitudes(const Graph& graph, const Weights& weights) {
    SiteScores out;
    for (const Node& node : graph.nodes) {
        const auto w = weights.find(node.name + ".weight");
        if ((node.op != "conv2d" && node.op != "linear") || w == weights.end()) continue;
        std::vector<double> own(static_cast<std::size_t>(w->second.shape[0]), 0.0);
        const std::size_t each = w->second.values.size() / own.size();
        for (std::size_t i = 0; i < w->second.values.size(); ++i) own[i / each] += double{w->second.values[i]} * w->second.values[i];
        const std::vector<double> scales = scales_after(graph, weights, node.name);
        for (std::size_t c = 0; c < own.size(); ++c) own[c] = std::sqrt(own[c]) * (scales.size() == own.size() ? scales[c] : 1.0);
        if (const double all = sum_of(own); all > 0)
            for (double& v : own) v /= all;
        out[node.name] = std::move(own);
    }
    return out;
}

ChannelWorth summed_over_writers(SiteScores scores) {
    return [scores = std::move(scores)](const Stream& stream) { return summed(scores, stream); };
}

KeptWorth kept_worth(const Graph& from, const SiteScores& scores, const Graph& to) {
    const std::map<std::string, ChannelMap> maps = channel_maps(from, to, summed_over_writers(scores));
    double shares = 0;
    int streams = 0;
    for (const Stream& stream : streams_of(from).all) {
        const std::vector<double> worth = summed(scores, stream);
        const std::vector<std::int64_t>* left = left_of(stream, maps);
        const double whole = sum_of(worth);
        if (!left || !(whole > 0)) continue;
        double kept = 0;
        for (std::int64_t c : *left)
            if (c >= 0) kept += worth[static_cast<std::size_t>(c)];
        shares += kept / whole, ++streams;
    }
    return {streams ? shares / streams : 1.0, kept_of_branches(from, scores, to)};
}

}  // namespace loopegg
