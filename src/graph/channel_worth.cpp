#include "graph/channel_worth.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
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

// The channels of a stream that are left, as the first of its remaining writers has them; none where no writer is.
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

namespace {

constexpr std::string_view restored = ".restore";  // a node that brings the channels of another one back is named so

// `count` of `width` channels in their order, as many of each block: the ones that are worth most, the first of equals.
std::vector<std::int64_t> kept_channels(std::int64_t width, std::int64_t count, std::int64_t blocks, const std::vector<double>& worth) {
    if (width % blocks != 0 || count % blocks != 0) blocks = 1;
    const std::int64_t block = width / blocks, kept = std::min(count / blocks, block);
    std::vector<std::int64_t> out;
    for (std::int64_t b = 0; b < blocks; ++b) {
        std::vector<std::int64_t> order(static_cast<std::size_t>(block));
        std::iota(order.begin(), order.end(), b * block);
        if (!worth.empty())
            std::stable_sort(order.begin(), order.end(),
                             [&](std::int64_t x, std::int64_t y) { return worth[static_cast<std::size_t>(x)] > worth[static_cast<std::size_t>(y)]; });
        order.resize(static_cast<std::size_t>(kept));
        std::sort(order.begin(), order.end());
        out.insert(out.end(), order.begin(), order.end());
    }
    out.resize(static_cast<std::size_t>(count), -1);  // more channels than there were
    return out;
}

class Mapper {
public:
    Mapper(const Graph& from, const Graph& to, const ChannelWorth& worth)
        : before_(streams_of(from)), after_(streams_of(to)), was_(after_.all.size()), kept_(after_.all.size()) {
        for (std::size_t s = 0; s < after_.all.size(); ++s) {
            for (const std::string& writer : after_.all[s].writers)
                if (!was_[s]) was_[s] = before_.written_by(base_of(from, writer));
            if (!was_[s]) continue;
            const Stream &old = before_.all[*was_[s]], &now = after_.all[s];
            kept_[s] = kept_channels(old.width, now.width, old.blocks, worth && now.width < old.width ? worth(old) : std::vector<double>{});
        }
    }

    // By channel of the value `now` of the new network: which of the value `old` it was.
    std::optional<std::vector<std::int64_t>> map(const std::string& now, const std::string& old) const {
        const auto a = after_.of.find(now), b = before_.of.find(old);
        if (a == after_.of.end() || b == before_.of.end() || a->second.places != b->second.places) return {};
        std::vector<std::int64_t> out;
        std::size_t next = 0;  // of the old streams: both lists are in the same order
        for (std::size_t s : a->second.streams) {
            std::int64_t offset = 0;
            std::size_t at = 0;
            const auto& olds = b->second.streams;
            const bool found = was_[s] && (at = find(olds, *was_[s], next)) < olds.size();
            for (std::size_t i = 0; found && i < at; ++i) offset += before_.all[olds[i]].width;
            if (found) next = at + 1;
            for (std::int64_t c = 0; c < after_.all[s].width; ++c) {
                std::int64_t channel = found ? kept_[s][static_cast<std::size_t>(c)] : -1;
                // A convolution that became depthwise writes its input's channels, and wrote a stream of its own: the same ones by number.
                if (!found && olds.size() == 1 && a->second.streams.size() == 1) {
                    channel = was_[s] ? kept_[s][static_cast<std::size_t>(c)] : c;
                    if (channel >= before_.all[olds[0]].width) channel = -1;
                }
                for (std::int64_t p = 0; p < a->second.places; ++p) out.push_back(channel < 0 ? -1 : (offset + channel) * a->second.places + p);
            }
        }
        return out;
    }

private:
    static std::string base_of(const Graph& from, const std::string& writer) {
        if (from.find(writer) || !writer.ends_with(restored)) return writer;
        return writer.substr(0, writer.size() - restored.size());
    }
    static std::size_t find(const std::vector<std::size_t>& all, std::size_t s, std::size_t first) {
        return static_cast<std::size_t>(std::find(all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())), all.end(), s) - all.begin());
    }

    Streams before_, after_;
    std::vector<std::optional<std::size_t>> was_;
    std::vector<std::vector<std::int64_t>> kept_;
};

}  // namespace

std::map<std::string, ChannelMap> channel_maps(const Graph& from, const Graph& to, const ChannelWorth& worth) {
    const Mapper mapper(from, to, worth);
    std::map<std::string, ChannelMap> out;
    for (const Node& node : to.nodes) {
        const Node* old = from.find(node.name);
        if (!old || old->op != node.op) continue;
        ChannelMap& map = out[node.name];
        map.outputs = mapper.map(node.name, node.name).value_or(std::vector<std::int64_t>{});
        if (!node.inputs.empty()) map.inputs = mapper.map(node.inputs[0], old->inputs[0]).value_or(std::vector<std::int64_t>{});
    }
    return out;
}

}  // namespace loopegg
