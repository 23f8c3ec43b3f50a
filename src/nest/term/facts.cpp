#include "nest/term/facts.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/instance_sets.hpp"
#include "nest/net/net.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/schedule_fact.hpp"

namespace loopegg {
namespace {

struct PairHash {
    std::size_t operator()(std::uint64_t v) const noexcept { return v * 0x9E3779B97F4A7C15ull ^ v >> 29; }
};

std::uint64_t key(std::uint32_t a, std::uint32_t b) { return static_cast<std::uint64_t>(a) << 32 | b; }

bool is_ordered(const Term& axis, bool sequential_only) {
    if (axis.size() == 0) {
        if (axis.integer()) return false;
        AxisRole role = role_of(axis_name(axis)->name);
        return role == AxisRole::sequential || (!sequential_only && role == AxisRole::reduction);
    }
    // Along a diagonal with a parallel axis, different values mean different results.
    if (axis.is("diag", 3)) return is_ordered(axis[1], sequential_only) && is_ordered(axis[2], sequential_only);
    if (axis.is("pair", 2)) return is_ordered(axis[0], sequential_only) || is_ordered(axis[1], sequential_only);
    return is_ordered(axis[0], sequential_only);
}

std::string key_of(const NetSizes& sizes) {
    std::string key = std::to_string(sizes.in.value_or(-1)) + (sizes.mixes ? "m" : "") + (sizes.computes ? "c" : "") + (sizes.kept ? "k" : "") +
                      (sizes.trimmed ? "t" : "") + (sizes.adds_input ? "a" : "") + (sizes.narrowable ? "n" : "");
    for (const ChannelCount& c : sizes.out) key += " " + std::to_string(c.fixed) + "+" + std::to_string(c.copies);
    return key;
}

// What two equal networks both say; none where they contradict each other. A term need not determine how many channels come in, or go out.
std::optional<NetSizes> both(const NetSizes& a, const NetSizes& b) {
    NetSizes sizes = a;
    if (!sizes.in) sizes.in = b.in;
    if (sizes.out.empty()) sizes.out = b.out;
    sizes.adds_input |= b.adds_input, sizes.narrowable |= b.narrowable;  // whichever of the terms shows it
    const bool agree = (!b.in || sizes.in == b.in) && (b.out.empty() || sizes.out == b.out);
    const bool alike = a.mixes == b.mixes && a.computes == b.computes && a.kept == b.kept && a.trimmed == b.trimmed;
    return agree && alike ? std::optional(sizes) : std::nullopt;
}

int depth_of(const Term& axis) {
    if (axis.size() == 0) return 0;
    int deepest = 0;
    for (const Term& child : axis.children()) deepest = std::max(deepest, depth_of(child));
    return deepest + 1;
}

}  // namespace

struct NestAnalysis::Tables {
    std::vector<AxisFact> axes;
    std::unordered_map<Term, std::uint32_t> axis_ids;
    std::vector<ScheduleFact> schedules;
    std::unordered_map<Term, std::uint32_t> schedule_ids;
    std::vector<StatementFact> statements;
    std::unordered_map<Term, std::uint32_t> statement_ids;
    std::unordered_map<std::uint32_t, Term> statement_terms;
    struct NestEntry {
        std::uint32_t statement, schedule;
        std::string restore;
    };
    std::vector<NestEntry> nests;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::uint32_t> nest_ids;
    std::vector<std::string> broken;
    std::unordered_map<std::string, std::uint32_t> broken_ids;
    std::vector<NetSizes> nets;
    std::map<std::string, std::uint32_t> net_ids;
    std::unordered_map<Term, std::int64_t> whole_outputs;  // by site
    std::vector<std::int64_t> numbers;
    std::unordered_map<std::int64_t, std::uint32_t> number_ids;

    std::unordered_map<std::uint64_t, NestFact, PairHash> loops, cats;  // (axis, rest), (first, second)
    std::unordered_map<std::uint64_t, std::optional<std::string>, PairHash> schedule_conflicts, axis_conflicts;
    std::unordered_map<std::uint64_t, std::optional<NaiveLoops>, PairHash> naive;  // (statement, schedule)

    NestFact number(std::int64_t value) {
        auto [it, fresh] = number_ids.emplace(value, static_cast<std::uint32_t>(numbers.size()));
        if (fresh) numbers.push_back(value);
        return {NestFact::Kind::number, it->second};
    }
    NestFact net(NetSizes sizes) {
        if (!sizes.broken.empty()) return refuse(sizes.broken);
        auto [it, fresh] = net_ids.emplace(key_of(sizes), static_cast<std::uint32_t>(nets.size()));
        if (fresh) nets.push_back(std::move(sizes));
        return {NestFact::Kind::net, it->second};
    }
    NestFact refuse(const std::string& why) {
        auto [it, fresh] = broken_ids.emplace(why, static_cast<std::uint32_t>(broken.size()));
        if (fresh) broken.push_back(why);
        return {NestFact::Kind::broken, it->second};
    }
    // The restrictions come from `as_written`, because a normal form may lose them.
    NestFact axis(const Term& as_written) {
        try {
            AxisDigit digit = normal_axis(as_written);
            std::vector<Term> where = restrictions(as_written);
            Term normal = loopegg::to_term(digit);
            std::vector<Term> parts{normal};
            parts.insert(parts.end(), where.begin(), where.end());
            auto [it, fresh] = axis_ids.emplace(Term("axis", std::move(parts)), static_cast<std::uint32_t>(axes.size()));
            if (fresh)
                axes.push_back(
                    {digit, std::move(where), iterators_of(as_written), digit.extent(), is_ordered(normal, false), is_ordered(normal, true), depth_of(normal)});
            return {NestFact::Kind::axis, it->second};
        } catch (const MalformedAxis& bad) {
            return refuse(bad.diagnostics()[0].message);
        }
    }
    NestFact schedule(ScheduleFact fact) {
        count_instances(fact);
        auto [it, fresh] = schedule_ids.emplace(key_of(fact), static_cast<std::uint32_t>(schedules.size()));
        if (fresh) schedules.push_back(std::move(fact));
        return {NestFact::Kind::schedule, it->second};
    }
    NestFact loop(std::uint32_t axis, std::uint32_t rest) {
        if (auto it = loops.find(key(axis, rest)); it != loops.end()) return it->second;
        ScheduleFact fact = schedules[rest];
        NestFact made;
        if (!open_digit(fact.open, axes[axis].digit)) {
            made = refuse("walks " + to_string(loopegg::to_term(axes[axis].digit)) + " twice");
        } else {
            for (auto& part : fact.parts)
                for (const Term& r : axes[axis].restrictions) add_restriction(part, r);
            made = schedule(std::move(fact));
        }
        loops.emplace(key(axis, rest), made);
        return made;
    }
    NestFact cat(std::uint32_t first, std::uint32_t second) {
        if (auto it = cats.find(key(first, second)); it != cats.end()) return it->second;
        ScheduleFact fact = schedules[first];
        const ScheduleFact& other = schedules[second];
        NestFact made;
        if (fact.open != other.open) {
            made = refuse("the parts of a cat enumerate different digits");
        } else if (!parts_disjoint(fact.parts, other.parts)) {
            made = refuse("the parts of a cat visit some instances twice");
        } else {
            fact.parts.insert(fact.parts.end(), other.parts.begin(), other.parts.end());
            join_parts(fact.parts);
            made = schedule(std::move(fact));
        }
        cats.emplace(key(first, second), made);
        return made;
    }
    NestFact statement(const Term& term) {
        Term plain = term;
        std::vector<Term> epilogues;
        // Layouts say where values are stored, not what they are.
        auto strip = [](auto&& self, const Term& t) -> Term {
            if (t.is("layout", 4)) return self(self, t[3]);
            if (t.is("epilogue", 2)) return Term("epilogue", {t[0], self(self, t[1])});
            if (t.is("order", 3)) return Term("order", {t[0], t[1], self(self, t[2])});
            return t;
        };
        plain = strip(strip, term);
        auto [it, fresh] = statement_ids.emplace(term, static_cast<std::uint32_t>(statements.size()));
        if (fresh) {
            StatementFact fact{plain, nullptr};
            try {
                fact.statement = std::make_shared<Statement>(statement_of(term));
            } catch (const UserError&) {
            }
            statements.push_back(std::move(fact));
            statement_terms.emplace(it->second, term);
        }
        return {NestFact::Kind::statement, it->second};
    }
    NestFact nest(std::uint32_t statement, std::uint32_t schedule, const std::string& restore) {
        const StatementFact& s = statements[statement];
        if (!s.statement) return refuse(to_string(statement_terms.at(statement)) + " is no statement");
        std::vector<OpenDigits> all;
        for (const Iterator& it : s.statement->axes)
            if (it.extent > 1) open_digit(all, normal_axis(axis_leaf(it.name, it.extent)));
        if (all != schedules[schedule].open) return refuse("a schedule that does not walk the axes of " + to_string(s.plain));
        // Statements that compute the same under other layouts make equal nests.
        std::uint32_t plain = this->statement(s.plain).id;
        auto [it, fresh] = nest_ids.emplace(std::tuple(plain, schedule, restore), static_cast<std::uint32_t>(nests.size()));
        if (fresh) nests.push_back({plain, schedule, restore});
        return {NestFact::Kind::nest, it->second};
    }
};

NestAnalysis::NestAnalysis(Options options) : options_(options), tables_(std::make_unique<Tables>()) {}
NestAnalysis::~NestAnalysis() = default;

NestFact NestAnalysis::make(Symbol op, std::span<const NestFact> children, Symbol) const {
    using Kind = NestFact::Kind;
    Tables& t = *tables_;
    const std::string& name = op.text();
    for (const NestFact& c : children)
        if (c.kind == Kind::broken) return c;
    auto is = [&](std::size_t i, Kind kind) { return i < children.size() && children[i].kind == kind; };
    auto axis_term = [&](std::size_t i) { return loopegg::to_term(t.axes[children[i].id].digit); };
    // An axis made of other axes is built over their normal forms, and has the restrictions of its parts.
    auto made_axis = [&](std::vector<Term> parts) {
        NestFact fact = t.axis(Term(op, std::move(parts)));
        if (fact.kind != Kind::axis) return fact;
        std::vector<Term> where = t.axes[fact.id].restrictions;
        std::size_t before = where.size();
        for (const NestFact& c : children)
            if (c.kind == Kind::axis)
                for (const Term& r : t.axes[c.id].restrictions) add_restriction(where, r);
        if (where.size() == before) return fact;
        AxisFact whole = t.axes[fact.id];
        whole.restrictions = where;
        std::vector<Term> key_parts{loopegg::to_term(whole.digit)};
        key_parts.insert(key_parts.end(), where.begin(), where.end());
        auto [it, fresh] = t.axis_ids.emplace(Term("axis", std::move(key_parts)), static_cast<std::uint32_t>(t.axes.size()));
        if (fresh) t.axes.push_back(std::move(whole));
        return NestFact{Kind::axis, it->second};
    };
    auto number = [&](std::size_t i) { return Term(t.numbers[children[i].id]); };

    if (children.empty()) {
        if (auto value = integer_of(op)) return t.number(*value);
        if (name == "done") return t.schedule({});
        Term leaf(op);
        if (auto axis = axis_name(leaf); axis && axis->extent > 0) return t.axis(leaf);
        return {};
    }
    if (is(0, Kind::axis)) {
        if ((name == "quo" || name == "rem") && is(1, Kind::number)) return made_axis({axis_term(0), number(1)});
        if (name == "pair" && is(1, Kind::axis)) return made_axis({axis_term(0), axis_term(1)});
        if (name == "span" && is(1, Kind::number) && is(2, Kind::number)) return made_axis({axis_term(0), number(1), number(2)});
    }
    if (name == "diag" && is(0, Kind::number) && is(1, Kind::axis) && is(2, Kind::axis)) return made_axis({number(0), axis_term(1), axis_term(2)});
    if (name == "cat" && is(0, Kind::schedule) && is(1, Kind::schedule)) return t.cat(children[0].id, children[1].id);
    if (name == "stage" && is(1, Kind::schedule)) return children[1];
    if (is_loop_operator(name)) {
        std::size_t n = children.size();
        if (n >= 2 && is(n - 2, Kind::axis) && is(n - 1, Kind::schedule)) return t.loop(children[n - 2].id, children[n - 1].id);
        if (n >= 2 && is(n - 2, Kind::number) && is(n - 1, Kind::schedule)) return children[n - 1];  // a loop over the number 0, which is an axis of extent 1
    }
    if (name == "nest" && is(0, Kind::statement) && is(1, Kind::schedule)) return t.nest(children[0].id, children[1].id, "");
    return {};
}

NestFact NestAnalysis::fact_of(const EGraph& graph, const NodeView& node) const {
    using Kind = NestFact::Kind;
    std::vector<NestFact> children;
    children.reserve(node.children.size());
    for (ClassId c : node.children) children.push_back((*this)[graph.find(c)]);
    const std::string& name = node.op.text();
    if (name == "restore" && children.size() == 2 && children[1].kind == Kind::nest) {
        const Tables::NestEntry& n = tables_->nests[children[1].id];
        return tables_->nest(n.statement, n.schedule, graph.smallest_term(node.children[0]).op().text());
    }
    if (std::find(net_operators().begin(), net_operators().end(), name) != net_operators().end()) return net_fact(graph, node);
    if ((name == "epilogue" && children.size() == 2 && children[1].kind == Kind::statement) ||
        (name == "layout" && children.size() == 4 && children[3].kind == Kind::statement) ||
        (name == "order" && children.size() == 3 && children[2].kind == Kind::statement)) {
        std::vector<Term> parts;
        for (std::size_t i = 0; i + 1 < children.size(); ++i) parts.push_back(graph.smallest_term(node.children[i]));
        parts.push_back(tables_->statement_terms.at(children.back().id));
        return tables_->statement(Term(node.op, std::move(parts)));
    }
    NestFact fact = make(node.op, children, node.op);
    if (fact.kind != Kind::unknown || children.empty() || is_loop_operator(name) || is_axis_operator(name) || name == "nest" || name == "cat" ||
        name == "stage")
        return fact;
    // A statement: an operator over numbers and words.
    std::vector<Term> parts;
    for (std::size_t i = 0; i < children.size(); ++i) {
        if (children[i].kind == Kind::number)
            parts.emplace_back(tables_->numbers[children[i].id]);
        else if (children[i].kind == Kind::unknown)
            parts.push_back(graph.smallest_term(node.children[i]));
        else
            return fact;
        if (parts.back().size() > 0) return fact;
    }
    NestFact statement = tables_->statement(Term(node.op, std::move(parts)));
    return tables_->statements[statement.id].statement ? statement : fact;
}

NestFact NestAnalysis::net_fact(const EGraph& graph, const NodeView& node) const {
    const std::string& op = node.op.text();
    if (op == "layer") {
        if (node.children.size() != 2) return {};
        const NestFact nest = (*this)[graph.find(node.children[1])];
        if (nest.kind != NestFact::Kind::nest) return {};
        const auto& statement = tables_->statements[tables_->nests[nest.id].statement].statement;
        const Term site = graph.smallest_term(graph.find(node.children[0]));
        NetSizes sizes = sizes_of_layer(*statement, site.is("kept", 1));
        // A network is there before rules narrow it, so the first nest of a site is the whole one.
        const auto [whole, fresh] = tables_->whole_outputs.emplace(site, output_channels(*statement));
        sizes.trimmed = sizes.mixes && output_channels(*statement) < whole->second;  // a depthwise site writes what it reads
        return tables_->net(std::move(sizes));
    }
    std::vector<NetSizes> parts;
    std::int64_t number = 0;
    for (ClassId child : node.children) {
        const NestFact fact = (*this)[graph.find(child)];
        if (fact.kind == NestFact::Kind::broken) return fact;
        if (fact.kind == NestFact::Kind::net) parts.push_back(tables_->nets[fact.id]);
        if (fact.kind == NestFact::Kind::number) number = tables_->numbers[fact.id];
    }
    if (parts.size() != net_parts(op)) return {};  // the sizes of a part are not known yet
    const std::string joining = op == "join" ? graph.smallest_term(graph.find(node.children[0])).op().text() : "";
    return tables_->net(sizes_of_net(op, joining, number, parts));
}

NestFact NestAnalysis::of_term(const Term& term) const {
    std::vector<NestFact> children;
    for (const Term& child : term.children()) children.push_back(of_term(child));
    return make(term.op(), children, term.op());
}

const ScheduleFact& NestAnalysis::schedule_of(const Term& sched) const {
    static const ScheduleFact none{{}, {}, 0, 0, false, "no schedule"};
    NestFact fact = of_term(sched);
    return fact.kind == NestFact::Kind::schedule ? tables_->schedules[fact.id] : none;
}

const NaiveLoops* NestAnalysis::naive_loops(ClassId statement, ClassId schedule) const {
    const NestFact s = (*this)[statement], l = (*this)[schedule];
    if (s.kind != NestFact::Kind::statement || l.kind != NestFact::Kind::schedule) return nullptr;
    auto it = tables_->naive.find(key(s.id, l.id));
    if (it == tables_->naive.end()) {
        std::optional<NaiveLoops> made;
        if (const auto& of = tables_->statements[s.id].statement) {
            const Term loops = loopegg::schedule_of(*of, domain_of_parts(*of, tables_->schedules[l.id].parts));
            bool list = true;
            for (Term t = loops; list && !t.is("done", 0);) {
                list = t.is("at", 2);
                if (list) t = Term(t[1]);
            }
            if (list) made = loopegg::naive_loops(*of, loops);
        }
        it = tables_->naive.emplace(key(s.id, l.id), std::move(made)).first;
    }
    return it->second ? &*it->second : nullptr;
}

bool NestAnalysis::visits_the_same(const Term& sched, ClassId schedule) const {
    const NestFact made = of_term(sched), wanted = (*this)[schedule];
    return made.kind == NestFact::Kind::schedule && !conflict_of(made, wanted);
}

bool NestAnalysis::visits_the_same(const Term& sched, const Term& other) const {
    const NestFact a = of_term(sched), b = of_term(other);
    return a.kind == NestFact::Kind::schedule && b.kind == NestFact::Kind::schedule && !conflict_of(a, b);
}

bool NestAnalysis::join_facts(NestFact& into, const NestFact& other) const {
    if (into.kind == NestFact::Kind::unknown && other.kind != NestFact::Kind::unknown) {
        into = other;
        return true;
    }
    if (into.kind == NestFact::Kind::net && other.kind == NestFact::Kind::net && into != other) {
        const NestFact before = into;
        if (const auto sizes = both(tables_->nets[into.id], tables_->nets[other.id])) into = tables_->net(*sizes);
        return into != before;
    }
    return false;
}

std::optional<std::string> NestAnalysis::conflict_of(const NestFact& a, const NestFact& b) const {
    using Kind = NestFact::Kind;
    if (a == b || a.kind == Kind::unknown || b.kind == Kind::unknown) return {};
    Tables& t = *tables_;
    if (b.kind == Kind::broken) return t.broken[b.id];
    if (a.kind == Kind::broken) return t.broken[a.id];
    if (a.kind != b.kind) return "one is a schedule, the other is none";
    if (a.kind == Kind::net)
        return both(t.nets[a.id], t.nets[b.id]) ? std::nullopt : std::optional<std::string>("they read or write different numbers of channels");
    if (a.kind == Kind::number) return std::to_string(t.numbers[a.id]) + " is not " + std::to_string(t.numbers[b.id]);
    auto compare = [&](auto& cache, std::uint32_t x, std::uint32_t y, auto&& differs) {
        auto it = cache.find(key(std::min(x, y), std::max(x, y)));
        if (it == cache.end()) it = cache.emplace(key(std::min(x, y), std::max(x, y)), differs()).first;
        return it->second;
    };
    auto schedules_differ = [&](std::uint32_t x, std::uint32_t y) {
        return compare(t.schedule_conflicts, x, y, [&]() -> std::optional<std::string> {
            const ScheduleFact &p = t.schedules[x], &q = t.schedules[y];
            if (p.open != q.open) return "they enumerate different digits";
            if (!same_parts(p.parts, q.parts)) return "they visit different instances";
            return {};
        });
    };
    if (a.kind == Kind::schedule) return schedules_differ(a.id, b.id);
    if (a.kind == Kind::axis)
        return compare(t.axis_conflicts, a.id, b.id, [&]() -> std::optional<std::string> {
            const AxisFact &p = t.axes[a.id], &q = t.axes[b.id];
            if (same_axis(loopegg::to_term(p.digit), p.restrictions, loopegg::to_term(q.digit), q.restrictions)) return {};
            return "axis " + to_string(loopegg::to_term(p.digit)) + " is not " + to_string(loopegg::to_term(q.digit));
        });
    if (a.kind == Kind::statement) return "they are different statements";
    const auto &p = t.nests[a.id], &q = t.nests[b.id];
    if (p.statement != q.statement) return "they are nests of different statements";
    if (p.restore != q.restore) return "they restore outputs differently";
    return schedules_differ(p.schedule, q.schedule);
}

const AxisFact* NestAnalysis::axis(ClassId c) const {
    const NestFact& f = (*this)[c];
    return f.kind == NestFact::Kind::axis ? &tables_->axes[f.id] : nullptr;
}

const ScheduleFact* NestAnalysis::schedule(ClassId c) const {
    const NestFact& f = (*this)[c];
    return f.kind == NestFact::Kind::schedule ? &tables_->schedules[f.id] : nullptr;
}

const StatementFact* NestAnalysis::statement(ClassId c) const {
    const NestFact& f = (*this)[c];
    return f.kind == NestFact::Kind::statement ? &tables_->statements[f.id] : nullptr;
}

const NetSizes* NestAnalysis::net(ClassId c) const {
    const NestFact& f = (*this)[c];
    return f.kind == NestFact::Kind::net ? &tables_->nets[f.id] : nullptr;
}

std::optional<Domain> NestAnalysis::domain(ClassId c) const {
    const NestFact& f = (*this)[c];
    if (f.kind != NestFact::Kind::nest) return {};
    const auto& n = tables_->nests[f.id];
    Domain domain = domain_of_parts(*tables_->statements[n.statement].statement, tables_->schedules[n.schedule].parts);
    domain.restore = restore_named(n.restore).value_or(Restore::none);
    return domain;
}

bool permutable(const AxisFact& a, const AxisFact& b, bool strict_fp) { return strict_fp ? !(a.ordered && b.ordered) : !(a.sequential && b.sequential); }

}  // namespace loopegg
