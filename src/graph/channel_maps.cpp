#include "graph/channel_maps.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace loopegg {
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
