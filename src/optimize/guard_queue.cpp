#include "optimize/guard_queue.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
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

// How far away, in rows or columns, the values are that replace missing pixels; none where all pixels are computed.
std::optional<std::int64_t> farthest_pixel(const Domain& domain) {
    if (domain.restore != Restore::repeat && domain.restore != Restore::zero) return {};
    std::optional<std::int64_t> farthest;
    for (const DomainPart& p : domain.parts)
        for (const DigitRange& r : p.ranges) {
            const std::int64_t kept = r.hi - r.lo, radix = r.digit.radix;
            if ((r.digit.axis != "oh" && r.digit.axis != "ow") || kept == radix) continue;
            farthest = std::max(farthest.value_or(0), r.digit.stride * kept * ((radix - 1) / kept));  // see output_sources
        }
    return farthest;
}

// Multiply-accumulates of the instances in the domain, and of the convolution that brings channels back, where there is one.
std::int64_t work_of(const Domain& domain, const std::vector<Axis>& axes) {
    std::int64_t work = instance_count(domain, axes);
    if (domain.restore != Restore::pointwise || !restricts(domain, "co")) return work;
    std::int64_t inputs = 1, outputs = 1;
    const std::vector<char> computed = projection(domain, axes, {"co"});
    for (const Axis& a : axes) {
        if (!a.reduction) outputs *= a.extent;
        if (a.name == "co") inputs *= std::count(computed.begin(), computed.end(), 1);
        if (a.name == "g") inputs *= a.extent;
    }
    return work + inputs * outputs;
}

}  // namespace

std::string domain_text(const Domain& domain) {
    std::string text = domain.restore == Restore::none ? "" : to_string(domain.restore) + " ";
    for (const DomainPart& p : domain.parts) {
        text += "[";
        for (const DigitRange& r : p.ranges) text += fmt::format(" {}={}..{}", digit_text(r.digit), r.lo, r.hi);
        for (const DigitPair& d : p.diagonals) text += fmt::format(" {}={}", digit_text(d.first), digit_text(d.second));
        text += " ]";
    }
    return text.empty() ? "whole" : text;
}

GuardQueue::GuardQueue(const Graph& original, const Sites& sites, CapacityOracle& oracle, GuardQueueOptions options)
    : original_(original), sites_(sites), oracle_(oracle), options_(std::move(options)), families_(families_of(original, sites, options_.together)) {
    for (const HiddenWidth& h : hidden_widths(original)) reader_[sites.index_of(h.writer)] = sites.index_of(h.reader);
}

const GuardQueue::Reading& GuardQueue::reading(const EGraph& graph, ClassId c) {
    const auto [place, unread] = read_now_.try_emplace(graph.find(c));
    if (!unread) return *place->second;
    Term nest = graph.smallest_term(c);
    const auto [it, fresh] = readings_.try_emplace(nest);
    place->second = &it->second;
    if (fresh) {
        const Term statement = nest_parts(nest).statement;
        Reading& r = it->second;
        r.nest = nest, r.domain = domain_of(nest), r.kind = 0;
        while (r.kind < sites_.kinds.size() && sites_.kinds[r.kind].statement != statement) ++r.kind;
        r.macs = work_of(r.domain, graph_axes(statement_of(statement)));
    }
    return it->second;
}

GuardQueue::ProposedNest GuardQueue::read(const EGraph& graph, const CapacityProposal& proposal) {
    const Reading& to = reading(graph, proposal.to);
    ProposedNest c{to.kind, to.domain, to.nest, to.macs, reading(graph, proposal.from).macs, "", proposal.rule.text()};
    if (c.kind == sites_.kinds.size()) {
        c.refusal = "no site of the network has this nest";
        return c;
    }
    const auto [it, fresh] = legality_.try_emplace({c.kind, domain_text(c.domain)});
    if (fresh) it->second = legality(c);
    c.refusal = c.macs >= c.from_macs ? "it would not save a multiplication" : it->second;
    return c;
}

// Why a proposed nest is not legal, as far as that is known without asking the oracle; empty where it is legal.
std::string GuardQueue::legality(const ProposedNest& c) const {
    // The guard sees a few images or tokens. It cannot know that other images differ at other places.
    if (restricts(c.domain, "n")) return "the rows of axis n are different images or tokens: each needs all of the layer";
    // The guard sees how strongly values influence the loss, not where they stand. An image whose upper rows are shown twice is as good to the guard as the
    // image itself.
    if (const auto pixels = farthest_pixel(c.domain); pixels && (*pixels > 1 || c.domain.restore == Restore::zero))
        return c.domain.restore == Restore::zero ? "rows or columns of pixels would be zero"
                                                 : fmt::format("pixels would be repeated from {} rows or columns away: only a neighbour may stand in", *pixels);
    if (plain_statement(sites_.kinds[c.kind].statement).op().text() == "matmul")
        return "a product of two activations has no weights that could learn to do without a part";
    try {  // the graph checks the domain: every output must be computed or restored, and parts must be disjoint
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
                        return fmt::format("blocks of {} channels are no multiple of {}", extent_of(axes, digit.axis) / digit.radix,
                                           options_.channels_multiple);
        if (c.domain.restore == Restore::pointwise)
            if (const NarrowedDomain n = narrowed(c.domain, axes); n.kept % options_.channels_multiple != 0)
                return fmt::format("the {} channels that are computed are no multiple of {}", n.kept, options_.channels_multiple);
    }
    return "";
}

std::string GuardQueue::effect_of(const ProposedNest& c) const {
    return effect_name(c.domain, extent_of(graph_axes(statement_of(sites_.kinds[c.kind].statement)), "co"));
}

GuardQueue::EffectClass GuardQueue::effect_class(const ProposedNest& c) const {
    // Where a convolution restores channels, only the site's own work counts, because the convolution is the same whatever the site reads.
    const std::int64_t left =
        c.domain.restore == Restore::pointwise ? instance_count(c.domain, graph_axes(statement_of(sites_.kinds[c.kind].statement))) : c.macs;
    const std::int64_t whole = sites_.all[sites_.kinds[c.kind].sites.front()].macs, common = std::gcd(left, whole);
    std::string effect = effect_of(c);
    for (const DomainPart& p : c.domain.parts)  // parts with other groups are another kind of variant: each gets its turn
        for (const DigitPair& d : p.diagonals)
            if (c.domain.parts.size() > 1) effect += fmt::format(" {}", d.first.radix);
    return {std::move(effect), left / common, whole / common, c.domain.restore};
}

GuardQueue::Question GuardQueue::question(std::vector<std::pair<std::size_t, ProposedNest*>> sites) const {
    Question q{std::move(sites)};
    for (const auto& [site, c] : q.sites) q.whole += sites_.all[site].macs, q.left += c->macs;
    return q;
}

// The order of questions. Effects take turns, and so do the families of sites of one effect, so that a small budget still sees something of everything. The
// questions of a family come in turns too: one that leaves half of the work, one that leaves a quarter, and so on, then the second of each, so that a small
// budget does not go into extremes. Proposed nests of one kind that are alike (as much work left, restored the same way, but for example another choice of
// channels) stand for each other: only one of them is asked about.
std::vector<GuardQueue::Question> GuardQueue::in_turn(const std::vector<ProposedNest*>& cases) const {
    std::map<EffectClass, std::map<std::size_t, ProposedNest*>> alike;  // by kind
    for (ProposedNest* c : cases) {
        const EffectClass like = effect_class(*c);
        const bool asked = asked_alike_.contains({c->kind, like}) || !alike[like].emplace(c->kind, c).second;
        if (asked) c->refusal = "one of the same effect and size was asked about";
    }
    std::map<std::string, std::map<std::size_t, std::vector<Question>>> piles;  // by effect and family
    for (const auto& [like, of_kind] : alike)
        for (std::size_t f = 0; f < families_.size(); ++f) {
            std::vector<std::pair<std::size_t, ProposedNest*>> sites;
            for (std::size_t site : families_[f])
                if (const auto c = of_kind.find(sites_.all[site].kind); c != of_kind.end()) sites.emplace_back(site, c->second);
            if (!sites.empty()) piles[std::get<std::string>(like)][f].push_back(question(std::move(sites)));
        }
    std::map<std::string, std::vector<Question*>> rows;  // by effect, families in turn
    std::size_t waiting = 0;
    for (auto& [effect, families] : piles) {
        for (auto& [family, pile] : families) {
            const auto key = [](const Question& q) { return halvings(q.whole, q.left); };
            std::stable_sort(pile.begin(), pile.end(), [&](const Question& a, const Question& b) { return key(a) < key(b); });
            take_turns(pile, key);
        }
        for (std::size_t i = 0, more = 1; more > 0; ++i) {
            more = 0;
            for (auto& [family, pile] : families)
                if (i < pile.size()) rows[effect].push_back(&pile[i]), ++more, ++waiting;
        }
    }
    std::vector<Question> order;
    for (std::size_t i = 0; order.size() < waiting; ++i)
        for (auto& [effect, row] : rows)
            if (i < row.size()) order.push_back(std::move(*row[i]));
    return order;
}

std::size_t GuardQueue::variant_of(const ProposedNest& c) {
    auto [it, fresh] = variant_index_.try_emplace({c.kind, domain_text(c.domain)}, variants_.size());
    if (fresh) {
        const std::string& site = sites_.all[sites_.kinds[c.kind].sites.front()].name;
        const Graph changed = with_domain(original_, site, c.domain);
        const Node& node = *changed.find(site);
        Variant v{c.kind, c.domain, c.nest, macs(node), parameters(node), {}, {}, effect_of(c)};
        if (v.two_nests()) v.macs += macs(restoring_node(changed, site)), v.parameters += parameters(restoring_node(changed, site));
        variants_.push_back(std::move(v));
    }
    return it->second;
}

// Outputs that are left out cost nothing where their reader does not read them. The guard need not be asked about such a nest.
std::vector<std::string> GuardQueue::admit_unread(const ProposedNest& c) {
    std::vector<std::string> at;
    if (!leaves_out_channels(c.domain) || c.domain.restore != Restore::zero) return at;
    const std::vector<char> computed = projection(c.domain, graph_axes(statement_of(sites_.kinds[c.kind].statement)), {"co"});
    if (!widths_.emplace(c.kind, computed).second) return at;  // an admitted variant computes the same channels
    for (std::size_t site : sites_.kinds[c.kind].sites) {
        const auto reader = reader_.find(site);
        if (reader == reader_.end() || sites_.all[site].kept || sites_.all[reader->second].kept) continue;
        const std::string& name = sites_.all[reader->second].name;
        judged_.push_back({site, variant_of(c),
                           Verdict{true, fmt::format("exact: '{}' reads none of the outputs that are left out", name), {{"kept", 1.0}, {"unread_by", name}}},
                           reader->second});
        at.push_back(sites_.all[site].name);
    }
    return at;
}

std::vector<Verdict> GuardQueue::ask(std::span<const Question> questions) {
    std::vector<Graph> graphs;
    for (const Question& q : questions) {
        std::vector<std::pair<std::string, Domain>> domains;
        for (const auto& [site, c] : q.sites) domains.emplace_back(sites_.all[site].name, c->domain);
        graphs.push_back(with_domains(original_, domains));
    }
    std::vector<Verdict> verdicts = oracle_.judge(original_, graphs);
    require(verdicts.size() == questions.size(), "the oracle answered another number of questions");
    for (std::size_t i = 0; i < verdicts.size(); ++i) ++asked_[questions[i].sites.front().second->rule], rejected_ += !verdicts[i].allowed;
    configurations_ += static_cast<std::int64_t>(questions.size());
    if (options_.told) options_.told(configurations_, options_.budget);
    return verdicts;
}

// Notes what the answer to a question says of each of the question's sites.
void GuardQueue::note(const Question& q, const Verdict& joint, std::map<ProposedNest*, Verdict>& by_nest) {
    std::vector<std::string> names;
    std::vector<std::int64_t> saved;
    for (const auto& [site, c] : q.sites) names.push_back(sites_.all[site].name), saved.push_back(sites_.all[site].macs - c->macs);
    std::vector<Verdict> shares = verdict_of_each_site(joint, names, saved);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const auto [site, c] = q.sites[i];
        Verdict& w = by_nest[c];
        w.allowed |= joint.allowed;
        w.evidence[joint.allowed ? "admitted" : "rejected"].push_back(names[i]);
        judged_.push_back({site, variant_of(*c), std::move(shares[i])});
    }
}

void GuardQueue::judge(const std::vector<ProposedNest*>& cases) {
    // Each rule asks by itself. A rule may use a part of the remaining budget, so that other rules and later iterations find some left, or as much as the
    // rule is known to need. Half as much again is for questions about parts of what was refused; a known need includes these questions.
    const std::int64_t left = options_.budget - configurations_;
    const std::int64_t part = std::max<std::int64_t>(left / options_.share, std::min<std::int64_t>(left, 16));
    const std::string& rule = cases.front()->rule;
    const auto known = options_.expected.find(rule);
    const std::int64_t needed = known == options_.expected.end() ? 0 : std::min(left, known->second - asked_[rule]);
    const std::int64_t allowance = std::max(part, needed), last = std::min(options_.budget, configurations_ + std::max(part * 3 / 2, needed));
    std::vector<Question> first = in_turn(cases);
    std::deque<Question> waiting(first.begin(), first.begin() + std::min(static_cast<std::ptrdiff_t>(first.size()), static_cast<std::ptrdiff_t>(allowance)));
    for (const Question& q : waiting)
        for (const auto& [site, c] : q.sites) asked_alike_.insert({c->kind, effect_class(*c)});
    for (ProposedNest* c : cases)
        if (c->refusal.empty() && !asked_alike_.contains({c->kind, effect_class(*c)}))
            c->refusal = "the budget of configurations is used up, or every site of this shape is kept";
    std::map<ProposedNest*, Verdict> whole;
    while (!waiting.empty()) {
        constexpr std::size_t batch = 32;  // small enough that progress moves and memory stays flat
        const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(std::min(batch, waiting.size()));
        const std::vector<Question> now(std::make_move_iterator(waiting.begin()), std::make_move_iterator(end));
        waiting.erase(waiting.begin(), end);
        const std::vector<Verdict> verdicts = ask(now);
        for (std::size_t i = 0; i < now.size(); ++i) {
            const auto& sites = now[i].sites;
            const bool room = configurations_ + static_cast<std::int64_t>(waiting.size()) + 2 <= last;
            if (verdicts[i].allowed || sites.size() == 1 || !room) {
                note(now[i], verdicts[i], whole);
                continue;
            }
            // A restriction that is too much for all sites of the question may be right for every second one.
            for (std::size_t half : {0, 1}) {
                std::vector<std::pair<std::size_t, ProposedNest*>> part;
                for (std::size_t k = half; k < sites.size(); k += 2) part.push_back(sites[k]);
                waiting.push_back(question(std::move(part)));
            }
        }
    }
    for (ProposedNest* c : cases)
        if (const std::vector<std::string> unread = admit_unread(*c); !unread.empty()) {
            c->refusal.clear();
            whole[c].allowed = true;
            whole[c].evidence["unread"] = unread;
        }
    for (auto& [c, w] : whole) {
        w.why = w.allowed ? fmt::format("{} of {} sites admit it", w.evidence["admitted"].size(), sites_.kinds[c->kind].sites.size()) : "no site admits it";
        if (w.evidence.contains("unread")) w.why += fmt::format("; at {} their reader may leave the missing outputs unread", w.evidence["unread"].size());
        answers_[{c->kind, domain_text(c->domain)}] = w;
    }
}

// The proposals that begin at an original or at a variant that was admitted before. A right side is a class of the e-graph even where it was refused, and
// a variant that was made from a refused one has no derivation from the original.
std::vector<std::size_t> GuardQueue::derivable(const EGraph& graph, std::span<const CapacityProposal> proposals) {
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

std::vector<Verdict> GuardQueue::answer(const EGraph& graph, std::span<const CapacityProposal> proposals) {
    read_now_.clear();
    const std::string not_read = exhausted() ? "the budget of configurations is used up" : "more variants were proposed than one iteration may look at";
    std::vector<Verdict> out(proposals.size(), Verdict{false, not_read, {}});
    const std::vector<std::size_t> derived = exhausted() ? std::vector<std::size_t>{} : derivable(graph, proposals);
    const std::size_t looks = std::min(options_.most_read * sites_.kinds.size(), derived.size());
    std::vector<std::size_t> looked;
    for (std::size_t i = 0; i < looks; ++i) looked.push_back(derived[i * derived.size() / looks]);
    std::vector<ProposedNest> cases;
    cases.reserve(looked.size());
    for (std::size_t i : looked) cases.push_back(read(graph, proposals[i]));
    std::map<Key, ProposedNest*> fresh;
    for (ProposedNest& c : cases)
        if (c.refusal.empty() && !answers_.count({c.kind, domain_text(c.domain)})) fresh.emplace(Key{c.kind, domain_text(c.domain)}, &c);
    std::vector<ProposedNest*> to_judge;
    for (auto& [key, c] : fresh) to_judge.push_back(c);
    if (!to_judge.empty()) judge(to_judge);
    for (std::size_t i = 0; i < looked.size(); ++i) {
        const ProposedNest& c = cases[i];
        auto it = c.refusal.empty() ? answers_.find({c.kind, domain_text(c.domain)}) : answers_.end();
        if (it != answers_.end()) {
            out[looked[i]] = it->second;
            if (it->second.allowed) admitted_.push_back(proposals[looked[i]].to);
        } else
            out[looked[i]].why = c.refusal.empty() ? "the budget of configurations is used up" : c.refusal;
    }
    for (const Verdict& v : out) refused_ += !v.allowed && v.evidence.is_null();
    return out;
}

}  // namespace loopegg
