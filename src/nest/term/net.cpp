#include "nest/term/net.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

using Width = std::optional<std::int64_t>;  // none: all channels, or as many as come in

Width smaller(Width a, Width b) { return !a ? b : !b ? a : std::min(a, b); }

// A channel of a value with two readers is wanted if one of them wants it.
Width larger(Width a, Width b) { return a && b ? std::optional(std::max(*a, *b)) : std::nullopt; }

// The channels of a value: how many there would be, where that can be told, and how many of them are missing.
struct Channels {
    Width total{};
    std::int64_t missing = 0;
};

std::int64_t number(const Term& t) {
    const auto n = t.integer();
    if (!n) throw UserError("'" + to_string(t) + "' is no number of channels");
    return *n;
}

[[noreturn]] void unknown(const Term& net) {
    throw UserError("'" + to_string(net) + "' is no network: expected layer, each, same, row, join, stream, tangle, none, write, read or within");
}

std::int64_t extent_of(const Statement& s, const char* name) {
    const int a = s.axis(name);
    return a < 0 ? 1 : s.axes[static_cast<std::size_t>(a)].extent;
}

Channels only(Width total, std::int64_t w, const Term& net) {
    if (!total) throw UserError("of how many channels " + std::to_string(w) + " are left cannot be told in " + to_string(net).substr(0, 80));
    return {total, std::max<std::int64_t>(0, *total - w)};
}

// Whether there is one filter for each channel. Then a channel that does not come in is not written, and a channel that is not wanted need not come in.
bool channel_by_channel(const Statement& s) { return s.axis("g") >= 0 && extent_of(s, "g") > 1 && extent_of(s, "co") == 1 && extent_of(s, "ci") == 1; }

// The channels that come out of a NET where the channels `in` come in.
Channels flow(const Term& net, const Channels& in) {
    if (net.is("same", 0) || net.is("each", 1)) return in;
    if (net.is("tangle", 2)) return {};
    if (net.is("layer", 1)) {
        const Statement s = statement_of(nest_parts(net[0]).statement);
        if (s.axis("co") < 0) return {};
        if (channel_by_channel(s)) return {extent_of(s, "g"), in.missing};
        return {extent_of(s, "co") * extent_of(s, "g"), 0};
    }
    if (net.is("row", 2)) return flow(net[1], flow(net[0], in));
    if (net.is("join", 3)) {
        const Channels a = flow(net[1], in), b = flow(net[2], in);
        if (net[0].is("add", 0)) return {a.total ? a.total : b.total, std::min(a.missing, b.missing)};
        return {a.total && b.total ? Width(*a.total + *b.total) : Width{}, a.missing + b.missing};
    }
    if (net.is("stream", 1)) return flow(net[0], in);
    if (net.is("none", 1)) return only(flow(net[0], in).total, 0, net);
    if (net.is("write", 2)) return only(flow(net[1], in).total, number(net[0]), net);
    if (net.is("within", 2)) return only(in.total, number(net[0]), net);
    if (net.is("read", 2)) return flow(net[1], only(in.total, number(net[0]), net));
    unknown(net);
}

// How many of the incoming channels are of use where `out` channels of the result are wanted.
Width wanted(const Term& net, Width out) {
    if (net.is("same", 0) || net.is("each", 1)) return out;
    if (net.is("layer", 1)) return channel_by_channel(statement_of(nest_parts(net[0]).statement)) ? out : Width{};
    if (net.is("tangle", 2)) return {};
    if (net.is("row", 2)) return wanted(net[0], wanted(net[1], out));
    if (net.is("join", 3)) return net[0].is("add", 0) ? larger(wanted(net[1], out), wanted(net[2], out)) : Width{};
    if (net.is("stream", 1)) return wanted(net[0], out);
    if (net.is("write", 2)) return wanted(net[1], smaller(number(net[0]), out));
    if (net.is("read", 2) || net.is("within", 2)) return number(net[0]);
    if (net.is("none", 1)) return 0;
    unknown(net);
}

class LayerWalk {
public:
    void walk(const Term& net, const Channels& in, Width out) {
        if (net.is("layer", 1)) return layer(net[0], in, out);
        if (net.is("same", 0) || net.is("each", 1) || net.is("none", 1)) return;
        if (net.is("row", 2)) {
            walk(net[0], in, wanted(net[1], out));
            walk(net[1], flow(net[0], in), out);
        } else if (net.is("join", 3)) {
            const bool sum = net[0].is("add", 0);
            walk(net[1], in, sum ? out : Width{});
            walk(net[2], in, sum ? out : Width{});
        } else if (net.is("stream", 1)) {
            walk(net[0], in, out);
        } else if (net.is("tangle", 2)) {
            walk(net[0], {}, {});
            walk(net[1], {}, {});
        } else if (net.is("write", 2)) {
            walk(net[1], in, smaller(number(net[0]), out));
        } else if (net.is("read", 2)) {
            walk(net[1], only(in.total, number(net[0]), net), out);
        } else if (net.is("within", 2)) {
            within(net[1], in, number(net[0]));
        } else {
            unknown(net);
        }
    }
    std::vector<NetLayer> layers;

private:
    void within(const Term& net, const Channels& in, std::int64_t w) {
        if (net.is("row", 2))
            within(net[0], in, w), within(net[1], in, w);
        else
            walk(net, only(in.total, w, net), w);
    }

    void layer(const Term& nest, const Channels& in, Width out) {
        const Statement s = statement_of(nest_parts(nest).statement);
        const std::int64_t groups = extent_of(s, "g"), inputs = extent_of(s, "ci") * groups, outputs = extent_of(s, "co") * groups;
        NetLayer l{nest, inputs - std::min(inputs, in.missing), std::min(outputs, out.value_or(outputs))};
        if (channel_by_channel(s)) l.inputs = l.outputs = std::min(l.inputs, l.outputs);
        layers.push_back(std::move(l));
    }
};

// The value with zeros in all but its first channels.
NetValue masked(NetValue v, std::int64_t channels) {
    if (channels >= v.channels) return v;
    const std::size_t places = v.values.size() / static_cast<std::size_t>(v.channels);
    std::fill(v.values.begin() + static_cast<std::ptrdiff_t>(places * static_cast<std::size_t>(channels)), v.values.end(), 0.0f);
    return v;
}

class NetRun {
public:
    explicit NetRun(const std::function<std::vector<float>(const Term&)>& weights) : weights_(weights) {}

    NetValue run(const Term& net, const NetValue& in) const {
        if (net.is("same", 0)) return in;
        if (net.is("each", 1)) {
            NetValue out = in;
            for (float& v : out.values) v = std::max(v, 0.0f);
            return out;
        }
        if (net.is("layer", 1)) return layer(net[0], in);
        if (net.is("row", 2)) return run(net[1], run(net[0], in));
        if (net.is("join", 3)) return join(net[0].is("add", 0), run(net[1], in), run(net[2], in));
        if (net.is("stream", 1)) return run(net[0], in);
        if (net.is("none", 1)) return masked(run(net[0], in), 0);
        if (net.is("write", 2)) return masked(run(net[1], in), number(net[0]));
        if (net.is("read", 2)) return run(net[1], masked(in, number(net[0])));
        if (net.is("within", 2)) return within(net[1], in, number(net[0]));
        unknown(net);
    }

private:
    NetValue within(const Term& net, const NetValue& in, std::int64_t w) const {
        if (net.is("row", 2)) return within(net[1], within(net[0], in, w), w);
        return masked(run(net, masked(in, w)), w);
    }

    static NetValue join(bool sum, NetValue a, const NetValue& b) {
        if (!sum) {
            a.values.insert(a.values.end(), b.values.begin(), b.values.end());
            a.channels += b.channels;
            return a;
        }
        if (a.channels != b.channels) throw UserError("values of " + std::to_string(a.channels) + " and " + std::to_string(b.channels) + " channels are added");
        for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
        return a;
    }

    NetValue layer(const Term& nest, const NetValue& in) const {
        const Statement s = statement_of(nest_parts(nest).statement);
        if (s.buffers[static_cast<std::size_t>(s.buffer("I"))].shape[1] != in.channels)
            throw UserError("a layer is given " + std::to_string(in.channels) + " channels: " + to_string(s.term));
        Buffers buffers;
        buffers["I"] = in.values, buffers["W"] = weights_(nest);
        return {s.buffers[0].shape[1], interpret(nest, buffers)};
    }

    const std::function<std::vector<float>(const Term&)>& weights_;
};

}  // namespace

bool is_net(const Term& term) {
    static constexpr std::array<std::string_view, 11> operators{"layer", "each", "same", "row", "join", "stream", "tangle", "none", "write", "read", "within"};
    return std::find(operators.begin(), operators.end(), term.op().text()) != operators.end();
}

namespace {

// The statement with another size of one axis. What follows its sums (epilogues) stays.
Term resized(const Term& statement, const char* axis, std::int64_t size) {
    if (statement.is("epilogue", 2)) return Term("epilogue", {statement[0], resized(statement[1], axis, size)});
    return with_size(statement, axis, Term(size));
}

}  // namespace

Term NetLayer::statement() const {
    const Term& statement = nest_parts(nest).statement;
    const Statement s = statement_of(statement);
    if (s.axis("co") < 0 || s.axis("ci") < 0) return statement;
    std::int64_t groups = extent_of(s, "g");
    if (channel_by_channel(s)) return resized(statement, "g", outputs);
    const Term& sched = nest_parts(nest).schedule;  // in a nest that is split in groups with channels first, the diagonal is the outermost loop
    if (sched.is("at", 2) && sched[0].is("diag", 3) && groups == 1) groups = *sched[0][0].integer();
    const Term sized = resized(resized(statement, "co", outputs / groups), "ci", inputs / groups);
    return s.axis("g") < 0 ? sized : resized(sized, "g", groups);
}

bool has_sites(const Term& net) {
    if (net.is("layer", 1)) return true;
    if (net.is("none", 1) || !is_net(net)) return false;
    return std::any_of(net.children().begin(), net.children().end(), has_sites);
}

bool passes_through(const Term& net) {
    if (net.is("same", 0) || net.is("each", 1)) return true;
    if (net.is("layer", 1) || net.is("none", 1) || net.is("tangle", 2)) return false;
    if (net.is("row", 2)) return passes_through(net[0]) && passes_through(net[1]);
    if (net.is("join", 3)) return passes_through(net[1]) || passes_through(net[2]);
    if (net.is("stream", 1)) return passes_through(net[0]);
    if (net.is("write", 2) || net.is("read", 2) || net.is("within", 2)) return passes_through(net[1]);
    unknown(net);
}

std::vector<NetLayer> layers_of(const Term& net) {
    LayerWalk walk;
    walk.walk(net, {}, {});
    return walk.layers;
}

std::vector<std::int64_t> widths_offered(std::int64_t channels) {
    const std::int64_t block = channels >= 16 ? 4 : 1;
    std::vector<std::int64_t> out;
    for (std::int64_t k = 1; k < 8; ++k)
        if (const std::int64_t w = channels * k / 8 / block * block; w > 0 && w < channels && (out.empty() || out.back() < w)) out.push_back(w);
    return out;
}

std::optional<std::int64_t> channels_written(const Term& net) {
    try {
        return flow(net, {}).total;
    } catch (const UserError&) {  // a part of the incoming channels, whose number is unknown
        return {};
    }
}

NetValue interpret_net(const Term& net, const NetValue& input, const std::function<std::vector<float>(const Term& nest)>& weights) {
    return NetRun(weights).run(net, input);
}

}  // namespace loopegg
