#include "rules/judge/net_proof.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "nest/net/net.hpp"
#include "rules/judge/net_counts.hpp"

namespace loopegg {
namespace {

// The smallest of some numbers, by their words.
using Least = std::map<std::string, Polynomial>;
// How many channels are wanted; none: all that there are.
using Limit = std::optional<Least>;

constexpr const char* wanted = "wanted";  // the symbol of the limit around a side

struct Flow {
    std::string name;  // how it is computed
    Least channels;
};

class Meaning {
public:
    explicit Meaning(const Rule& rule) : counts_(rule), left_(rule.left[0].term), right_(rule.right[0].term) { note_resized(right_), note_resized(left_); }

    // Why the right side is not the left one, whatever of its channels is wanted; empty where it is.
    std::string difference() {
        const Channels in = counts_.in(left_), others = counts_.in(right_);
        if (in && others && !(*in == *others)) return fmt::format("the left side reads {} channels, the right side {}", to_string(*in), to_string(*others));
        const Channels common = in ? in : others ? others : Channels(Polynomial::of("in"));
        const Polynomial written = counts_.written(left_, common), other = counts_.written(right_, common);
        if (!(written == other)) return fmt::format("the left side writes {} channels, the right side {}", to_string(written), to_string(other));
        if (std::string why = counts_.misfit(right_); !why.empty()) return why;
        for (const Limit& limit : {Limit(), Limit(least(Polynomial::of(wanted)))}) {
            const Flow input{"in", least(*common)};
            const Flow a = go(left_, input, limit), b = go(right_, input, limit);
            if (a.name != b.name || words(a.channels) != words(b.channels)) return fmt::format("the left side is {}, the right side {}", shown(a), shown(b));
        }
        return "";
    }

private:
    static Least least(const Polynomial& p) { return {{to_string(p), p}}; }
    static std::string words(const Least& all) {
        std::string text;
        for (const auto& [word, p] : all) text += (text.empty() ? "" : " or ") + word;
        return text;
    }
    static std::string shown(const Flow& v) { return v.name + "[" + words(v.channels) + "]"; }

    // A nest that can be given so many outputs has at least as many.
    void note_resized(const Term& net) {
        if (net.is("layer", 2)) {
            const NetCounts::Nest n = counts_.nest(net[1]);
            if (n.outputs) at_most_.emplace_back(to_string(*n.outputs), to_string(n.base));
        }
        for (const Term& part : net.children()) note_resized(part);
    }

    // Without numbers that others are never above. What is within a width is wanted whole.
    Least reduced(Least all) const {
        for (const auto& [few, nest] : at_most_)
            if (all.contains(few))
                std::erase_if(all, [&](const auto& one) { return one.first == "writes " + nest || one.first.starts_with("out " + nest + "("); });
        if (left_.is("within", 2) && all.contains(to_string(left_[0]))) all.erase(wanted);
        return all;
    }
    Least both(Least a, const Limit& b) const {
        if (b) a.insert(b->begin(), b->end());
        return reduced(std::move(a));
    }

    Flow go(const Term& net, const Flow& in, const Limit& limit) {
        if (net.is("same", 0)) return {in.name, both(in.channels, limit)};
        if (is_variable_leaf(net)) return variable(net, in, limit);
        if (net.is("layer", 2)) return layer(net, in, limit);
        if (net.is("row", 2) || net.is("stream", 2)) return go(net[1], go(net[0], in, limit ? before(net[1], *limit) : Limit()), limit);
        if (net.is("join", 3)) return join(net, in, limit);
        if (net.is("none", 1)) return {"nothing", least({})};
        if (net.is("write", 2)) return go(net[1], in, both(least(counts_.number(net[0])), limit));
        if (net.is("read", 2)) return go(net[1], {in.name, least(counts_.number(net[0]))}, limit);
        if (net.is("lack", 2)) return go(net[1], in, limit);
        if (net.is("within", 2)) return within(net[1], in, least(counts_.number(net[0])));
        Flow out{fmt::format("({} {})", to_string(net), shown(in)), in.channels};
        if (net.is("each", 2)) return out;
        out.channels = least(counts_.written(net, in.channels.size() == 1 ? Channels(in.channels.begin()->second) : Channels()));
        return out;
    }

    // What a network that is a variable writes, of what comes in and of what is wanted. Of a channelwise one, more than comes in cannot be wanted.
    Flow variable(const Term& net, const Flow& in, Limit limit) {
        const auto copies = counts_.copies(net);
        if (copies && limit) std::erase_if(*limit, [&](const auto& one) { return comes_in(one.second, *copies, in.channels); });
        if (limit && limit->empty()) limit.reset();
        Least channels;
        if (copies)
            for (const auto& [word, p] : in.channels) channels.merge(least(counts_.resolved(*copies * p)));
        else
            channels = least(counts_.written_by(net, words(in.channels)));
        return {fmt::format("({} {} of {})", to_string(net), shown(in), limit ? words(*limit) : "all"), both(std::move(channels), limit)};
    }
    bool comes_in(const Polynomial& some, const Polynomial& copies, const Least& in) const {
        return std::any_of(in.begin(), in.end(), [&](const auto& one) { return counts_.resolved(copies * one.second) == some; }) ||
               in.contains(part(some, copies));
    }
    static std::string part(const Polynomial& of, const Polynomial& copies) { return "part(" + to_string(of) + ", " + to_string(copies) + ")"; }

    Flow layer(const Term& net, const Flow& in, const Limit& limit) {
        const NetCounts::Nest n = counts_.nest(net[1]);
        const std::string base = to_string(n.base);
        if (!(n.base == net[1]) && !counts_.has_guard("changeable", net[0])) return {unasked(net[0]), in.channels};
        const Least outputs = both(least(n.outputs ? *n.outputs : Polynomial::of("writes " + base)), limit);
        const Polynomial written = n.outputs ? *n.outputs : counts_.written_by(n.base, words(in.channels));
        return {fmt::format("(layer {} {} {} to {})", to_string(net[0]), base, shown(in), words(outputs)), both(least(written), limit)};
    }

    // The limit of a network whose values go on to another one, of which so many channels are wanted.
    Limit before(const Term& next, const Least& limit) {
        if (next.is("each", 2) || next.is("same", 0)) return limit;
        if (next.is("lack", 2) || next.is("read", 2)) return before(next[1], limit);
        if (next.is("row", 2) || next.is("stream", 2)) {
            const Limit between = before(next[1], limit);
            return between ? before(next[0], *between) : Limit();
        }
        const bool mixes = next.is("write", 2) || next.is("within", 2) || next.is("none", 1) || next.is("opaque", 1) || next.is("tangle", 3);
        if (mixes || counts_.is_fresh(next) || (next.is("layer", 2) && counts_.nest(next[1]).outputs)) return {};
        const auto copies = next.is("spread", 2) ? std::optional(counts_.number(next[0])) : counts_.copies(next);
        const std::string unknown = next.is("layer", 2) ? to_string(counts_.nest(next[1]).base) : to_string(next);
        Least made;
        for (const auto& [word, p] : limit) {
            const auto whole = copies ? p.divided_by(*copies) : std::nullopt;
            made.merge(least(whole && whole->is_whole() ? *whole : Polynomial::of(copies ? part(p, *copies) : "before " + unknown + "(" + word + ")")));
        }
        return made;
    }

    void operands(const Term& net, const Term& node, const Flow& in, const Limit& limit, std::vector<Flow>& all) {
        if (net.is("join", 3) && net[0] == node) return operands(net[1], node, in, limit, all), operands(net[2], node, in, limit, all);
        Flow value = go(net, in, limit);
        if (value.name != "nothing") all.push_back(std::move(value));
    }
    Flow join(const Term& net, const Flow& in, const Limit& limit) {
        std::vector<Flow> all;
        operands(net[1], net[0], in, limit, all), operands(net[2], net[0], in, limit, all);
        if (all.empty()) return {"nothing", least({})};
        if (all.size() == 1) return all.front();
        std::string name = "(" + to_string(net[0]), sum;
        for (const Flow& v : all) name += " " + shown(v), sum += (sum.empty() ? "" : ", ") + words(v.channels);
        if (net[0].is("add", 1)) return {name + ")", all.front().channels};
        return {name + (limit ? " of " + words(*limit) : "") + ")", least(Polynomial::of("joined(" + sum + ")"))};
    }

    Flow within(const Term& net, const Flow& in, const Least& width) {
        if (net.is("row", 2)) return within(net[1], within(net[0], in, width), width);
        if (is_variable_leaf(net)) return {fmt::format("({} within {} {})", to_string(net), words(width), in.name), width};
        return go(net, {in.name, width}, width);
    }

    static std::string unasked(const Term& site) {
        return fmt::format("a site of another size, though {0} may have to stay as it is (changeable {0})", to_string(site));
    }

    NetCounts counts_;
    Term left_, right_;
    std::vector<std::pair<std::string, std::string>> at_most_;  // a number, and the nest that writes no fewer channels
};

// The parts of a neural rule's right side among those of its left side.
class Parts {
public:
    explicit Parts(const Rule& rule) : counts_(rule) {}

    // Whether `is` has the parts of `was` in their order, with as many channels or fewer.
    bool among(const Term& is, const Term& was) {
        if (is_width(was)) {
            if (is.op() == was.op() && is.size() == was.size() && is[0] == was[0]) return among(is[1], was[1]);
            return loses_around(is) && among(is[is.size() - 1], was);
        }
        if (is.is("none", 1) && !may_go(was)) return false;
        if (loses_around(is)) return less_ = true, among(is[is.size() - 1], was);
        if (was.is("row", 2) && is.is("row", 2) && among_both(is, was)) return true;
        if (was.is("row", 2)) return (lost(was[0]) && among(is, was[1])) || (lost(was[1]) && among(is, was[0]));
        if (was.op() != is.op() || was.size() != is.size()) return false;
        if (was.is("layer", 2)) return is[0] == was[0] && resized(is, was);
        if (was.is("join", 3) || was.is("tangle", 3) || was.is("stream", 2) || was.is("none", 1)) return among_both(is, was);
        return is == was;
    }
    bool less() const { return less_; }

private:
    static bool loses_around(const Term& net) { return is_width(net) || net.is("none", 1); }
    bool among_both(const Term& is, const Term& was) {
        for (std::size_t i = 0; i < was.size(); ++i)
            if (!(is_net(was[i]) || is_variable_leaf(was[i]) ? among(is[i], was[i]) : is[i] == was[i])) return false;
        return true;
    }
    bool lost(const Term& part) {
        if (!is_variable_leaf(part) || !counts_.has_guard("computes", part) || !may_go(part)) return false;
        return less_ = true;
    }
    // Whether no site of the part is kept.
    bool may_go(const Term& part) const {
        if (part.is("layer", 2)) return counts_.has_guard("changeable", part[0]);
        if (is_variable_leaf(part)) return counts_.has_guard("free", part);
        return std::all_of(part.children().begin(), part.children().end(), [&](const Term& p) { return !(is_net(p) || is_variable_leaf(p)) || may_go(p); });
    }
    bool resized(const Term& layer, const Term& was) {
        if (layer == was) return true;
        less_ = true;
        return counts_.nest(layer[1]).base == counts_.nest(was[1]).base && counts_.has_guard("changeable", layer[0]);
    }

    NetCounts counts_;
    bool less_ = false;
};

std::string fault_of(const Rule& rule) {
    if (rule.arrow != Arrow::neural) return Meaning(rule).difference();
    Parts parts(rule);
    if (!parts.among(rule.right[0].term, rule.left[0].term)) return "the right side has parts that are not those of the left side in their order";
    return parts.less() ? "" : "leaves nothing out: a neural rule must restrict";
}

}  // namespace

RuleVerdict prove_net_rule(const Rule& rule) {
    RuleVerdict verdict;
    verdict.why = fault_of(rule);
    if (verdict.why.empty() && rule.arrow == Arrow::both) {
        Rule back = rule;
        std::swap(back.left, back.right);
        verdict.why = fault_of(back);
    }
    if (verdict.why.empty()) verdict.proof = RuleVerdict::Proof::all_sizes;
    return verdict;
}

}  // namespace loopegg
