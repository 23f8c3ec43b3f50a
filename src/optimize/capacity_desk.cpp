#include "optimize/capacity_desk.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "nest/domain.hpp"
#include "optimize/named_sequences.hpp"
#include "optimize/take_turns.hpp"

namespace loopegg {
namespace {

std::string digit_text(const Digit& d) { return fmt::format("{}/{}%{}", d.axis, d.stride, d.radix); }

std::int64_t extent_of(const std::vector<Axis>& axes, std::string_view name) {
    for (const Axis& a : axes)
        if (a.name == name) return a.extent;
    return 1;
}

bool restricts(const Domain& domain, std::string_view axis) {
    for (const DomainPart& p : domain.parts) {
        for (const DigitRange& r : p.ranges)
            if (r.digit.axis == axis) return true;
        for (const DigitPair& d : p.diagonals)
            if (d.first.axis == axis || d.second.axis == axis) return true;
    }
    return false;
}

// How far away the values come from that stand in for rows or columns of pixels; none where all of them are computed.
std::optional<std::int64_t> farthest_pixel(const Domain& domain) {
    if (domain.restore == Restore::none) return {};
    std::optional<std::int64_t> farthest;
    for (const DomainPart& p : domain.parts)
        for (const DigitRange& r : p.ranges) {
            const std::int64_t kept = r.hi - r.lo, radix = r.digit.radix;
            if ((r.digit.axis != "oh" && r.digit.axis != "ow") || kept == radix) continue;
            farthest = std::max(farthest.value_or(0), r.digit.stride * kept * ((radix - 1) / kept));   // see output_sources
        }
    return farthest;
}

}  // namespace

std::string domain_text(const Domain& domain) {
    std::string text = domain.restore == Restore::repeat ? "repeat " : domain.restore == Restore::zero ? "zero " : "";
    for (const DomainPart& p : domain.parts) {
        text += "[";
        for (const DigitRange& r : p.ranges) text += fmt::format(" {}={}..{}", digit_text(r.digit), r.lo, r.hi);
        for (const DigitPair& d : p.diagonals) text += fmt::format(" {}={}", digit_text(d.first), digit_text(d.second));
        text += " ]";
    }
    return text.empty() ? "whole" : text;
}

CapacityDesk::CapacityDesk(const Graph& original, const Sites& sites, CapacityOracle& oracle, DeskOptions options)
    : original_(original), sites_(sites), oracle_(oracle), options_(std::move(options)) {
    for (const HiddenWidth& h : hidden_widths(original)) reader_[sites.index_of(h.writer)] = sites.index_of(h.reader);
}

const CapacityDesk::Reading& CapacityDesk::reading(const EGraph& graph, ClassId c) {
    Term nest = graph.smallest_term(c);
    auto [it, fresh] = readings_.try_emplace(nest);
    if (fresh) {
        const Term statement = nest_parts(nest).statement;
        Reading& r = it->second;
        r.nest = nest, r.domain = domain_of(nest), r.kind = 0;
        while (r.kind < sites_.kinds.size() && sites_.kinds[r.kind].statement != statement) ++r.kind;
        r.macs = instance_count(r.domain, graph_axes(statement_of(statement)));
    }
    return it->second;
}

CapacityDesk::Case CapacityDesk::read(const EGraph& graph, const CapacityProposal& proposal) {
    const Reading& to = reading(graph, proposal.to);
    Case c{to.kind, to.domain, to.nest, to.macs, reading(graph, proposal.from).macs, "", proposal.rule.text()};
    c.refusal = c.kind == sites_.kinds.size() ? "no site of the network has this nest" : legality(c);
    return c;
}

// What can be said without asking the oracle.
std::string CapacityDesk::legality(const Case& c) const {
    if (c.macs >= c.from_macs) return "it would not save a multiplication";
    // The guard sees a few images or tokens and cannot know that the next ones stand elsewhere.
    if (restricts(c.domain, "n")) return "the rows of axis n are different images or tokens: each needs all of the layer";
    // It sees how strongly values are felt, not where they stand: to it, an image of which the upper rows are shown twice is as good as the image.
    if (const auto pixels = farthest_pixel(c.domain); pixels && (*pixels > 1 || c.domain.restore == Restore::zero))
        return c.domain.restore == Restore::zero ? "rows or columns of pixels would be zero" : fmt::format("pixels would be repeated from {} rows or columns away: only a neighbour may stand in", *pixels);
    if (plain_statement(sites_.kinds[c.kind].statement).op().text() == "matmul") return "a product of two activations has no weights that could learn to do without a part";
    try {   // the graph knows what a domain may be: every output computed or restored, parts apart
        with_domain(original_, sites_.all[sites_.kinds[c.kind].sites.front()].name, c.domain);
    } catch (const UserError& e) {
        return e.diagnostics().front().message;
    }
    if (options_.channels_multiple > 1) {
        std::vector<Axis> axes = graph_axes(statement_of(sites_.kinds[c.kind].statement));
        for (const DomainPart& p : c.domain.parts)
            for (const DigitPair& d : p.diagonals)
                for (const Digit& digit : {d.first, d.second})
                    if ((digit.axis == "co" || digit.axis == "ci") && digit.stride % options_.channels_multiple != 0)
                        return fmt::format("blocks of {} channels are no multiple of {}", extent_of(axes, digit.axis) / digit.radix, options_.channels_multiple);
    }
    return "";
}

std::string CapacityDesk::effect_of(const Case& c) const {
    return effect_name(c.domain, extent_of(graph_axes(statement_of(sites_.kinds[c.kind].statement)), "co"));
}

CapacityDesk::Likeness CapacityDesk::likeness(const Case& c) const { return {c.kind, effect_of(c), c.macs, c.domain.restore}; }

// One that leaves half of the work, one that leaves a quarter, and so on, then the next of each: a small budget should not go into extremes.
void CapacityDesk::from_mild_to_harsh(std::vector<Case*>& pile) const {
    auto key = [&](const Case* c) { return halvings(sites_.all[sites_.kinds[c->kind].sites.front()].macs, c->macs); };
    std::stable_sort(pile.begin(), pile.end(), [&](const Case* a, const Case* b) { return key(a) < key(b); });
    take_turns(pile, key);
}

// Every effect in turn, and of each every kind of site, so that a small budget still sees something of everything. Cases that are alike (as
// much work left, restored the same way: another choice of channels, say) stand for each other: one of them is asked about.
std::vector<CapacityDesk::Case*> CapacityDesk::in_turn(const std::vector<Case*>& cases) const {
    std::set<Likeness> seen = asked_alike_;
    std::map<std::string, std::map<std::size_t, std::vector<Case*>>> piles;   // by effect and kind
    for (Case* c : cases) {
        const auto [like, fresh] = seen.insert(likeness(*c));
        if (!fresh) c->refusal = "one of the same effect and size was asked about";
        else piles[std::get<std::string>(*like)][c->kind].push_back(c);
    }
    std::map<std::string, std::vector<Case*>> rows;                           // by effect, kinds in turn
    std::size_t waiting = 0;
    for (auto& [effect, kinds] : piles)
        for (auto& [kind, pile] : kinds) from_mild_to_harsh(pile);
    for (auto& [effect, kinds] : piles)
        for (std::size_t i = 0, more = 1; more > 0; ++i) {
            more = 0;
            for (auto& [kind, pile] : kinds)
                if (i < pile.size()) rows[effect].push_back(pile[i]), ++more, ++waiting;
        }
    std::vector<Case*> order;
    for (std::size_t i = 0; order.size() < waiting; ++i)
        for (auto& [effect, row] : rows)
            if (i < row.size()) order.push_back(row[i]);
    return order;
}

std::size_t CapacityDesk::variant_of(const Case& c) {
    auto [it, fresh] = variant_index_.try_emplace({c.kind, domain_text(c.domain)}, variants_.size());
    if (fresh) {
        const std::string& site = sites_.all[sites_.kinds[c.kind].sites.front()].name;
        const Graph changed = with_domain(original_, site, c.domain);
        const Node& node = *changed.find(site);
        variants_.push_back({c.kind, c.domain, c.nest, macs(node), parameters(node), {}, {}, effect_of(c)});
    }
    return it->second;
}

// Outputs that are left out cost nothing where their reader is not going to read them. Nobody need be asked about that.
std::vector<std::string> CapacityDesk::admit_unread(const Case& c) {
    std::vector<std::string> at;
    if (!leaves_out_channels(c.domain) || c.domain.restore != Restore::zero) return at;
    const std::vector<char> computed = projection(c.domain, graph_axes(statement_of(sites_.kinds[c.kind].statement)), {"co"});
    if (!widths_.emplace(c.kind, computed).second) return at;   // the same channels in other words
    for (std::size_t site : sites_.kinds[c.kind].sites) {
        const auto reader = reader_.find(site);
        if (reader == reader_.end() || sites_.all[site].kept || sites_.all[reader->second].kept) continue;
        const std::string& name = sites_.all[reader->second].name;
        judged_.push_back({site, variant_of(c), Verdict{true, fmt::format("exact: '{}' reads none of the outputs that are left out", name), {{"kept", 1.0}, {"unread_by", name}}}, reader->second});
        at.push_back(sites_.all[site].name);
    }
    return at;
}

void CapacityDesk::judge(const std::vector<Case*>& cases) {
    // Each rule asks by itself: one takes at most a part of what is left, for the others and for what later iterations reach.
    const std::int64_t left = options_.budget - configurations_;
    const std::int64_t allowance = std::max<std::int64_t>(left / options_.share, std::min<std::int64_t>(left, 16));
    struct Asked { Case* c; std::size_t site; };
    std::vector<Asked> asked;
    for (Case* c : in_turn(cases)) {
        const std::size_t before = asked.size();
        for (std::size_t site : sites_.kinds[c->kind].sites)
            if (!sites_.all[site].kept && static_cast<std::int64_t>(asked.size()) < allowance) asked.push_back({c, site});
        if (asked.size() > before) asked_alike_.insert(likeness(*c));
        else c->refusal = "the budget of configurations is used up, or every site of this shape is kept";
    }
    std::vector<Verdict> verdicts;
    constexpr std::size_t batch = 32;   // small enough that progress moves and memory stays flat
    for (std::size_t i = 0; i < asked.size(); i += batch) {
        std::vector<Graph> graphs;
        for (std::size_t k = i; k < std::min(i + batch, asked.size()); ++k)
            graphs.push_back(with_domain(original_, sites_.all[asked[k].site].name, asked[k].c->domain));
        for (Verdict& v : oracle_.judge(original_, graphs)) verdicts.push_back(std::move(v));
        configurations_ += static_cast<std::int64_t>(graphs.size());
        if (options_.told) options_.told(configurations_, options_.budget);
    }
    require(verdicts.size() == asked.size(), "the oracle answered another number of questions");
    std::map<Case*, Verdict> whole;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        auto [c, site] = asked[i];
        ++asked_[c->rule];
        rejected_ += !verdicts[i].allowed;
        Verdict& w = whole[c];
        w.allowed |= verdicts[i].allowed;
        w.evidence[verdicts[i].allowed ? "admitted" : "rejected"].push_back(sites_.all[site].name);
        judged_.push_back({site, variant_of(*c), std::move(verdicts[i])});
    }
    for (Case* c : cases)
        if (const std::vector<std::string> unread = admit_unread(*c); !unread.empty()) {
            c->refusal.clear();
            whole[c].allowed = true;
            whole[c].evidence["unread"] = unread;
        }
    for (auto& [c, w] : whole) {
        w.why = w.allowed ? fmt::format("{} of {} sites admit it", w.evidence["admitted"].size(), sites_.kinds[c->kind].sites.size())
                          : "no site admits it";
        if (w.evidence.contains("unread")) w.why += fmt::format("; at {} their reader may leave the missing outputs unread", w.evidence["unread"].size());
        answers_[{c->kind, domain_text(c->domain)}] = w;
    }
}

// Those that begin at an original or at what was admitted before: a right side is a class of the e-graph even where it was refused, and what
// comes of that has no way back to the original.
std::vector<std::size_t> CapacityDesk::derivable(const EGraph& graph, std::span<const CapacityProposal> proposals) {
    std::unordered_map<ClassId, bool> known;
    for (ClassId c : admitted_) known[graph.find(c)] = true;
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < proposals.size(); ++i) {
        const ClassId from = graph.find(proposals[i].from);
        auto [it, fresh] = known.try_emplace(from, false);
        if (fresh) it->second = reading(graph, from).domain.whole();
        if (it->second) out.push_back(i);
    }
    return out;
}

std::vector<Verdict> CapacityDesk::answer(const EGraph& graph, std::span<const CapacityProposal> proposals) {
    const std::string not_read = exhausted() ? "the budget of configurations is used up" : "more variants were proposed than one iteration may look at";
    std::vector<Verdict> out(proposals.size(), Verdict{false, not_read, {}});
    const std::vector<std::size_t> derived = exhausted() ? std::vector<std::size_t>{} : derivable(graph, proposals);
    const std::size_t looks = std::min(options_.most_read, derived.size());
    std::vector<std::size_t> looked;
    for (std::size_t i = 0; i < looks; ++i) looked.push_back(derived[i * derived.size() / looks]);
    std::vector<Case> cases;
    cases.reserve(looked.size());
    for (std::size_t i : looked) cases.push_back(read(graph, proposals[i]));
    std::map<Key, Case*> fresh;
    for (Case& c : cases)
        if (c.refusal.empty() && !answers_.count({c.kind, domain_text(c.domain)})) fresh.emplace(Key{c.kind, domain_text(c.domain)}, &c);
    std::vector<Case*> to_judge;
    for (auto& [key, c] : fresh) to_judge.push_back(c);
    if (!to_judge.empty()) judge(to_judge);
    for (std::size_t i = 0; i < looked.size(); ++i) {
        const Case& c = cases[i];
        auto it = c.refusal.empty() ? answers_.find({c.kind, domain_text(c.domain)}) : answers_.end();
        if (it != answers_.end()) {
            out[looked[i]] = it->second;
            if (it->second.allowed) admitted_.push_back(proposals[looked[i]].to);
        }
        else out[looked[i]].why = c.refusal.empty() ? "the budget of configurations is used up" : c.refusal;
    }
    for (const Verdict& v : out) refused_ += !v.allowed && v.evidence.is_null();
    return out;
}

}  // namespace loopegg
