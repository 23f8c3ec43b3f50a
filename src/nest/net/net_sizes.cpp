#include "nest/net/net_sizes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "nest/net/net.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

using Counts = std::vector<ChannelCount>;

// Without counts that another one is never below.
Counts largest(Counts all) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::erase_if(all, [&](const ChannelCount& a) {
        return std::any_of(all.begin(), all.end(), [&](const ChannelCount& b) { return a != b && b.fixed >= a.fixed && b.copies >= a.copies; });
    });
    return all;
}

NetSizes row(const NetSizes& x, const NetSizes& y) {
    NetSizes sizes;
    sizes.in = x.in;
    if (!sizes.in && x.channelwise() && x.out.front().copies > 0 && y.in) sizes.in = *y.in / x.out.front().copies;
    sizes.mixes = x.mixes || y.mixes;
    sizes.adds_input = x.adds_input || (!x.fresh() && y.adds_input);
    sizes.trimmed = y.trimmed || (!y.fresh() && x.trimmed);
    sizes.narrowable = y.fresh() ? y.narrowable : y.channelwise() && x.narrowable;
    if (y.fresh()) {
        sizes.out = y.out;
        return sizes;
    }
    for (const ChannelCount& a : x.out)
        for (const ChannelCount& b : y.out) sizes.out.push_back({b.fixed + b.copies * a.fixed, b.copies * a.copies});
    sizes.out = largest(std::move(sizes.out));
    return sizes;
}

NetSizes joined(bool sum, const NetSizes& x, const NetSizes& y) {
    NetSizes sizes;
    sizes.in = x.in ? x.in : y.in;
    if (x.in && y.in && *x.in != *y.in) sizes.broken = fmt::format("of one value, {} and {} channels are read", *x.in, *y.in);
    sizes.mixes = x.mixes || y.mixes, sizes.trimmed = x.trimmed || y.trimmed;
    sizes.adds_input = x.adds_input || y.adds_input || (sum && x.fresh() != y.fresh());
    sizes.narrowable = sum && x.narrowable && y.narrowable;
    if (sum) {
        sizes.out = x.out;
        sizes.out.insert(sizes.out.end(), y.out.begin(), y.out.end());
    } else {
        for (const ChannelCount& a : x.out)
            for (const ChannelCount& b : y.out) sizes.out.push_back({a.fixed + b.fixed, a.copies + b.copies});
    }
    sizes.out = largest(std::move(sizes.out));
    return sizes;
}

NetSizes wrapped(std::string_view op, std::int64_t number, const NetSizes& x) {
    NetSizes sizes = x;
    if (op == "write" || op == "within") {
        const auto whole = x.written();
        sizes.out = {{number, 0}}, sizes.trimmed = x.trimmed || !whole || number < *whole;
    }
    if (op == "read" || op == "within") sizes.in = number;
    if (op == "lack" && x.in) sizes.in = *x.in - number;
    if (sizes.in && *sizes.in < 0) sizes.broken = fmt::format("{} of {} channels are absent", number, *x.in);
    if (op == "none") sizes.out = {{0, 0}}, sizes.computes = sizes.kept = sizes.adds_input = false, sizes.trimmed = true;
    return sizes;
}

bool is_wrapper(std::string_view op) { return op == "write" || op == "read" || op == "lack" || op == "within" || op == "none"; }

}  // namespace

bool NetSizes::fresh() const {
    return !out.empty() && std::all_of(out.begin(), out.end(), [](const ChannelCount& c) { return c.copies == 0; });
}

bool NetSizes::channelwise() const { return !mixes && out.size() == 1 && out.front().fixed == 0 && out.front().copies > 0; }

std::optional<std::int64_t> NetSizes::written(std::int64_t channels) const {
    std::optional<std::int64_t> most;
    for (const ChannelCount& c : out) most = std::max(most.value_or(0), c.fixed + c.copies * channels);
    return most;
}

std::optional<std::int64_t> NetSizes::absent(std::int64_t missing) const {
    if (out.empty()) return {};
    if (out.size() == 1) return out.front().copies * missing;
    if (!in) return {};
    return *written(*in) - *written(*in - missing);
}

NetSizes sizes_of_layer(const Statement& s, bool kept) {
    NetSizes sizes;
    sizes.computes = true, sizes.kept = kept, sizes.mixes = !is_depthwise(s);
    if (const std::int64_t in = input_channels(s), out = output_channels(s); in > 0 && out > 0) {
        sizes.in = in;
        sizes.out = is_depthwise(s) ? Counts{{0, 1}} : Counts{{out, 0}};
        sizes.narrowable = !is_depthwise(s);
    }
    return sizes;
}

NetSizes sizes_of_net(std::string_view op, std::string_view joining, std::int64_t number, std::span<const NetSizes> parts) {
    for (const NetSizes& p : parts)
        if (!p.broken.empty()) return p;
    NetSizes sizes;
    if (parts.size() != net_parts(op)) {
        sizes.broken = fmt::format("'{}' has {} networks as parts, and needs {}", op, parts.size(), net_parts(op));
        return sizes;
    }
    if (op == "same" || op == "each")
        sizes.out = {{0, 1}};
    else if (op == "spread")
        sizes.out = {{0, number}};
    else if (op == "opaque" || op == "tangle")
        sizes.mixes = true;
    else if (op == "row" || op == "stream")
        sizes = row(parts[0], parts[1]), sizes.narrowable &= op == "row";  // all joins of a stream write its channels
    else if (op == "join")
        sizes = joined(joining == "add", parts[0], parts[1]);
    else if (is_wrapper(op))
        sizes = wrapped(op, number, parts[0]);
    if (is_wrapper(op)) return sizes;
    sizes.computes = std::any_of(parts.begin(), parts.end(), [](const NetSizes& p) { return p.computes; });
    sizes.kept = std::any_of(parts.begin(), parts.end(), [](const NetSizes& p) { return p.kept; });
    return sizes;
}

bool parts_fit(std::string_view op, std::string_view joining, const NetSizes& whole, std::span<const NetSizes> parts) {
    if (!whole.broken.empty()) return false;
    if (op == "row" || op == "stream") {
        const auto written = parts[0].written();
        return !written || !parts[1].in || *written == *parts[1].in;
    }
    if (op != "join" || joining != "add" || !whole.in) return true;
    const auto a = parts[0].written(*whole.in), b = parts[1].written(*whole.in);
    return !a || !b || *a == *b || *a == 0 || *b == 0;  // of a branch that is left out, nothing is written
}

NetSizes sizes_of(const Term& net) {
    if (!is_net(net)) throw UserError("'" + to_string(net).substr(0, 80) + "' is no network");
    if (net.is("layer", 2)) return sizes_of_layer(statement_of(nest_parts(net[1]).statement), net_site(net[0]).kept);
    std::vector<NetSizes> parts;
    for (const Term& child : net.children())
        if (is_net(child)) parts.push_back(sizes_of(child));
    const std::int64_t number = net.size() > 0 ? net[0].integer().value_or(0) : 0;
    const std::string joining = net.is("join", 3) ? net[0].op().text() : "";
    return sizes_of_net(net.op().text(), joining, number, parts);
}

}  // namespace loopegg
