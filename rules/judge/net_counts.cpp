#include "rules/judge/net_counts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/sexpr.hpp"
#include "egraph/rewrite.hpp"
#include "nest/net/net.hpp"

namespace loopegg {
namespace {

Term term_of(const Expression& e) { return parse_term(e.text); }

}  // namespace

bool is_variable_leaf(const Term& term) { return term.size() == 0 && is_variable(term.op()); }

bool is_width(const Term& net) { return net.is("write", 2) || net.is("read", 2) || net.is("lack", 2) || net.is("within", 2); }

NetCounts::NetCounts(const Rule& rule) : rule_(rule) {
    note_guards();
    // A fact that a later one refines is looked at again.
    for (int i = 0; i < 3; ++i) assume_fit(rule.left[0].term);
}

bool NetCounts::has_guard(const char* name, const Term& variable) const {
    return std::any_of(rule_.guards.begin(), rule_.guards.end(),
                       [&](const GuardCall& g) { return g.guard->name == name && !g.arguments.empty() && g.arguments[0].text == to_string(variable); });
}

const Expression* NetCounts::computed(const Term& leaf) const {
    for (const ChoiceCall& c : rule_.choices)
        if (c.computed && c.variable == leaf.op()) return &*c.computed;
    return nullptr;
}

void NetCounts::note_guards() {
    int quotients = 0;  // numbered: a symbol whose name had another symbol in it would seem to depend on that one
    for (const GuardCall& g : rule_.guards) {
        if (g.arguments.size() != 2) continue;
        if (g.guard->name == "=") assume_equal(value(g.arguments[0]), value(g.arguments[1]));
        if (g.guard->name == "divides") assume_equal(value(g.arguments[1]), value(g.arguments[0]) * Polynomial::of(fmt::format("quotient {}", ++quotients)));
    }
}

// One symbol is expressed by the others, what a variable reads first.
void NetCounts::assume_equal(const Polynomial& a, const Polynomial& b) {
    const Polynomial difference = resolved(a - b);
    std::optional<std::string> solved;
    for (const auto& [m, c] : difference.terms()) {
        if (m.size() != 1 || m.begin()->second != 1 || abs(c) != 1) continue;
        const std::string& symbol = m.begin()->first;
        const auto uses = std::count_if(difference.terms().begin(), difference.terms().end(), [&](const auto& t) { return t.first.contains(symbol); });
        const bool nested = std::any_of(difference.terms().begin(), difference.terms().end(), [&](const auto& t) {
            return std::any_of(t.first.begin(), t.first.end(), [&](const auto& s) { return s.first != symbol && s.first.find(symbol) != std::string::npos; });
        });
        if (uses == 1 && !nested && (!solved || symbol > *solved)) solved = symbol;
    }
    if (!solved) return;
    const mpq_class sign = difference.terms().at({{*solved, 1}});
    const Polynomial rest = difference - Polynomial(sign) * Polynomial::of(*solved);
    known_[*solved] = Polynomial(-sign) * rest;
}

Polynomial NetCounts::resolved(Polynomial p) const {
    for (bool changed = true; changed;) {
        changed = false;
        for (const std::string& s : p.symbols())
            if (const auto at = known_.find(s); at != known_.end()) p = p.substituted(s, at->second), changed = true;
    }
    return p;
}

Polynomial NetCounts::number(const Term& leaf) {
    if (const auto n = leaf.integer()) return Polynomial(static_cast<long>(*n));
    if (const Expression* e = computed(leaf)) return value(*e);
    return resolved(Polynomial::of(to_string(leaf)));
}

Polynomial NetCounts::value(const Expression& e) {
    if (e.form == Expression::Form::number) return Polynomial(static_cast<long>(e.number));
    if (e.form == Expression::Form::call) return call(e);
    return resolved(Polynomial::of(e.text));
}

// A call of which nothing more is known is a symbol: equal calls are equal.
Polynomial NetCounts::call(const Expression& e) {
    const std::string& name = e.function->name;
    if (name == "channels") return resolved(written(term_of(e.arguments[0]), in(term_of(e.arguments[0]))));
    if (name == "channels-in")
        if (const Channels known = in(term_of(e.arguments[0]))) return resolved(*known);
    if (name == "absent") return absent(value(e.arguments[0]), term_of(e.arguments[1]));
    if (name == "+" || name == "*" || name == "-") {
        Polynomial all = value(e.arguments[0]);
        if (name == "-" && e.arguments.size() == 1) return Polynomial() - all;
        for (std::size_t i = 1; i < e.arguments.size(); ++i) {
            const Polynomial next = value(e.arguments[i]);
            all = name == "+" ? all + next : name == "-" ? all - next : all * next;
        }
        return resolved(all);
    }
    if (name == "/" || name == "floor-div")
        if (const auto whole = value(e.arguments[0]).divided_by(value(e.arguments[1])); whole && whole->is_whole()) return *whole;
    return Polynomial::of(e.text);
}

Polynomial NetCounts::absent(const Polynomial& missing, const Term& net) {
    if (const auto each = copies(net)) return *each * missing;
    const Channels all = in(net);
    if (!all) return Polynomial::of("absent " + to_string(missing) + " " + to_string(net));
    return resolved(written(net, all) - written(net, *all - missing));
}

std::optional<Polynomial> NetCounts::copies(const Term& net) const {
    if (is_variable_leaf(net) && has_guard("channelwise", net)) return resolved(Polynomial::of("copies " + to_string(net)));
    return {};
}

NetCounts::Nest NetCounts::nest(const Term& leaf) {
    const Expression* e = computed(leaf);
    if (!e || e->form != Expression::Form::call) return {leaf};
    const std::string& name = e->function->name;
    if (name != "with-outputs" && name != "with-fewer-inputs") return {leaf};
    Nest inner{term_of(e->arguments[0])};
    if (name == "with-outputs") inner.outputs = value(e->arguments[1]);
    if (name == "with-fewer-inputs") inner.missing = value(e->arguments[1]);
    return inner;
}

Channels NetCounts::in(const Term& net) {
    if (is_variable_leaf(net)) return resolved(Polynomial::of("in " + to_string(net)));
    if (net.is("layer", 2)) {
        const Nest n = nest(net[1]);
        return resolved(Polynomial::of("in " + to_string(n.base)) - n.missing);
    }
    if (net.is("row", 2) || net.is("stream", 2)) return net[0].is("each", 2) || net[0].is("same", 0) ? in(net[1]) : in(net[0]);
    if (net.is("join", 3)) {
        const Channels first = in(net[1]);
        return first ? first : in(net[2]);
    }
    if (net.is("read", 2) || net.is("within", 2)) return number(net[0]);
    if (net.is("none", 1)) return in(net[0]);
    if (net.is("write", 2)) return in(net[1]);
    if (!net.is("lack", 2)) return {};
    const Channels whole = in(net[1]);
    return whole ? Channels(resolved(*whole - number(net[0]))) : Channels();
}

Polynomial NetCounts::written_by(const Term& net, const std::string& in) {
    return resolved(Polynomial::of(is_fresh(net) ? "out " + to_string(net) : "out " + to_string(net) + "(" + in + ")"));
}

Polynomial NetCounts::written(const Term& net, const Channels& in) {
    const std::string words = in ? to_string(resolved(*in)) : "?";
    if (is_variable_leaf(net)) {
        const auto each = copies(net);
        return each && in ? resolved(*each * *in) : written_by(net, words);
    }
    if (net.is("layer", 2)) {
        const Nest n = nest(net[1]);
        return n.outputs ? resolved(*n.outputs) : written_by(n.base, words);
    }
    if ((net.is("same", 0) || net.is("each", 2)) && in) return resolved(*in);
    if (net.is("spread", 2) && in) return resolved(number(net[0]) * *in);
    if (net.is("row", 2) || net.is("stream", 2)) return written(net[1], written(net[0], in));
    if (net.is("none", 1)) return {};
    if (net.is("write", 2) || net.is("within", 2)) return number(net[0]);
    if (net.is("read", 2)) return written(net[1], number(net[0]));
    if (net.is("lack", 2)) return written(net[1], in);
    if (!net.is("join", 3)) return Polynomial::of("out " + to_string(net) + "(" + words + ")");
    const Polynomial a = written(net[1], in), b = written(net[2], in);
    if (net[0].is("add", 1)) return a.is_zero() ? b : a;
    if (net[0].is("concat", 1)) return a + b;
    return Polynomial::of("out " + to_string(net[0]) + "(" + to_string(a) + ", " + to_string(b) + ")");
}

std::string NetCounts::misfit(const Term& net) {
    if (!is_net(net)) return "";
    const auto differ = [](const Channels& a, const Channels& b) { return a && b && !(*a == *b); };
    const bool row = net.is("row", 2) || net.is("stream", 2);
    if (row && in(net) && differ(written(net[0], in(net)), in(net[1])))
        return to_string(net[1]) + " does not read the " + to_string(written(net[0], in(net))) + " channels that " + to_string(net[0]) + " writes";
    if (net.is("join", 3)) {
        if (differ(in(net[1]), in(net[2]))) return "the parts of " + to_string(net) + " read different numbers of channels";
        const Polynomial a = written(net[1], in(net)), b = written(net[2], in(net));
        if (net[0].is("add", 1) && !a.is_zero() && !b.is_zero() && differ(a, b))
            return "the parts of " + to_string(net) + " write " + to_string(a) + " and " + to_string(b) + " channels";
    }
    for (const Term& part : net.children())
        if (std::string why = misfit(part); !why.empty()) return why;
    return "";
}

void NetCounts::assume_fit(const Term& net) {
    if (!is_net(net)) return;
    for (const Term& part : net.children()) assume_fit(part);
    if (net.is("row", 2) || net.is("stream", 2)) {
        if (const Channels first = in(net), second = in(net[1]); first && second) assume_equal(*second, written(net[0], first));
    }
    if (!net.is("join", 3)) return;
    if (const Channels a = in(net[1]), b = in(net[2]); a && b) assume_equal(*b, *a);
    const Polynomial a = written(net[1], in(net)), b = written(net[2], in(net));
    if (net[0].is("add", 1) && !a.is_zero() && !b.is_zero()) assume_equal(b, a);
}

}  // namespace loopegg
