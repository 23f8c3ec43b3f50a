#include "nest/net/net_walk.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "nest/net/net_sizes.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

using Count = std::optional<std::int64_t>;

Count smaller(Count a, Count b) { return !a ? b : !b ? a : std::min(a, b); }

std::int64_t number(const Term& t) {
    if (const auto n = t.integer()) return *n;
    throw UserError("'" + to_string(t) + "' is not a number of channels");
}

class Walk {
public:
    explicit Walk(NetVisitor& visitor) : visitor_(visitor) {}

    // `limit`: of the channels that the part would write, only so many are wanted.
    NetValue go(const Term& net, const NetValue& in, Count limit) {
        if (net.is("same", 0)) return {in.name, smaller(in.channels, limit)};
        if (net.is("layer", 2)) return layer(net, in, limit);
        if (net.is("each", 2) || net.is("opaque", 1)) return {visitor_.each(node_named(net[net.size() - 1]), in), in.channels};
        if (net.is("spread", 2)) return spread(net, in);
        if (net.is("row", 2)) return row(net, in, limit);
        if (net.is("join", 3)) return join(net, in, limit);
        if (net.is("stream", 2)) return row(net, in, limit);
        if (net.is("tangle", 3)) return tangle(net, in);
        if (net.is("none", 1)) return {"", 0};
        if (net.is("write", 2)) return go(net[1], in, smaller(number(net[0]), limit));
        if (net.is("read", 2)) return go(net[1], {in.name, number(net[0])}, limit);
        if (net.is("lack", 2)) return lack(net, in, limit);
        if (net.is("within", 2)) return within(net[1], in, number(net[0]));
        throw UserError("'" + to_string(net).substr(0, 80) + "' is no network: expected " + operators);
    }

private:
    static constexpr const char* operators = "layer, each, spread, opaque, same, row, join, stream, tangle, none, write, read, lack or within";

    NetValue layer(const Term& net, const NetValue& in, Count limit) {
        const NetSite site = net_site(net[0]);
        const Statement s = statement_of(nest_parts(net[1]).statement);
        const std::int64_t reads = input_channels(s), writes = output_channels(s);
        if (reads == 0) return {visitor_.layer(site, net[1], in), {}};
        if (in.channels && *in.channels > reads) throw UserError(fmt::format("'{}' reads {} channels, and {} come in", site.name, reads, *in.channels));
        const std::int64_t present = in.channels.value_or(reads), wanted = std::min(writes, limit.value_or(writes));
        Term nest = net[1];
        if (is_depthwise(s)) {
            const std::int64_t left = std::min(present, wanted);
            nest = sized(site, nest, with_fewer_inputs(nest, reads - left), left == reads);
            return {visitor_.layer(site, nest, in), left};
        }
        nest = sized(site, nest, with_outputs(nest, wanted), wanted == writes);
        nest = sized(site, nest, with_fewer_inputs(nest, reads - present), present == reads);
        return {visitor_.layer(site, nest, in), wanted};
    }

    static Term sized(const NetSite& site, const Term& nest, const std::optional<Term>& resized, bool as_it_is) {
        if (as_it_is) return nest;
        if (site.kept) throw UserError("'" + site.name + "' is kept, and so are its channels");
        if (!resized) throw UserError("'" + site.name + "' cannot have so many channels");
        return *resized;
    }

    NetValue lack(const Term& net, const NetValue& in, Count limit) {
        const Count says = sizes_of(net).in;
        if (says && in.channels && *says != *in.channels) throw UserError(fmt::format("{} channels come in where {} are said to", *in.channels, *says));
        return go(net[1], {in.name, in.channels ? in.channels : says}, limit);
    }

    NetValue spread(const Term& net, const NetValue& in) {
        const std::string value = visitor_.each(node_named(net[1]), in);
        return {value, in.channels ? Count(*in.channels * number(net[0])) : Count{}};
    }

    NetValue row(const Term& net, const NetValue& in, Count limit) {
        Count before{};
        if (limit)
            if (const NetSizes second = sizes_of(net[1]); second.channelwise()) before = *limit / second.out.front().copies;
        return go(net[1], go(net[0], in, before), limit);
    }

    // All operands of joins of one node are joined at once.
    void operands(const Term& net, const Term& join, const NetValue& in, Count limit, std::vector<NetValue>& all) {
        if (net.is("join", 3) && net[0] == join) {
            operands(net[1], join, in, limit, all), operands(net[2], join, in, limit, all);
            return;
        }
        NetValue value = go(net, in, limit);
        if (value.channels != 0) all.push_back(std::move(value));  // nothing is written by what is left out
    }

    NetValue join(const Term& net, const NetValue& in, Count limit) {
        const bool sum = net[0].is("add", 1);
        if (!sum && !net[0].is("concat", 1)) throw UserError("'" + to_string(net[0]) + "' is no join: expected (add NAME) or (concat NAME)");
        if (!sum && limit) throw UserError("which channels of a concatenation are written is ambiguous: narrow what it joins");
        std::vector<NetValue> all;
        operands(net[1], net[0], in, limit, all), operands(net[2], net[0], in, limit, all);
        if (all.empty()) throw UserError("nothing is left of the join '" + node_named(net[0][0]) + "'");
        Count channels = all.front().channels;
        for (std::size_t i = 1; i < all.size(); ++i) {
            const Count next = all[i].channels;
            if (sum && channels && next && *channels != *next)
                throw UserError(fmt::format("'{}' adds {} channels to {}", node_named(net[0][0]), *next, *channels));
            if (sum)
                channels = channels ? channels : next;
            else
                channels = channels && next ? Count(*channels + *next) : Count{};
        }
        if (all.size() == 1) return all.front();
        const std::string node = node_named(net[0][0]);
        return {sum ? visitor_.add(node, all) : visitor_.concat(node, all), channels};
    }

    // What is inside a tangle reads and writes as it does in the whole network.
    NetValue tangle(const Term& net, const NetValue& in) {
        if (!net[0].is("between", 2)) throw UserError("'" + to_string(net[0]) + "' describes no tangle: expected (between NAME NAME)");
        std::vector<NetLayer> inside;
        for (std::size_t i : {1, 2}) {
            const std::vector<NetLayer> layers = layers_of(net[i]);
            inside.insert(inside.end(), layers.begin(), layers.end());
        }
        return {visitor_.tangle(node_named(net[0][0]), node_named(net[0][1]), inside, in), {}};
    }

    NetValue within(const Term& net, const NetValue& in, std::int64_t w) {
        if (net.is("row", 2)) return within(net[1], within(net[0], in, w), w);
        return go(net, {in.name, w}, w);
    }

    NetVisitor& visitor_;
};

class Layers final : public NetVisitor {
public:
    std::string layer(const NetSite& site, const Term& nest, const NetValue&) override {
        all.push_back({site.name, nest});
        return "";
    }
    std::string each(const std::string&, const NetValue&) override { return ""; }
    std::string add(const std::string&, const std::vector<NetValue>&) override { return ""; }
    std::string concat(const std::string&, const std::vector<NetValue>&) override { return ""; }
    std::string tangle(const std::string&, const std::string&, const std::vector<NetLayer>& inside, const NetValue&) override {
        all.insert(all.end(), inside.begin(), inside.end());
        return "";
    }
    std::vector<NetLayer> all;
};

}  // namespace

NetValue walk_net(const Term& net, const NetValue& input, NetVisitor& visitor) { return Walk(visitor).go(net, input, {}); }

std::vector<NetLayer> layers_of(const Term& net) {
    Layers layers;
    walk_net(net, {}, layers);
    return std::move(layers.all);
}

}  // namespace loopegg
