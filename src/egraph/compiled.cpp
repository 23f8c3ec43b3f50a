#include "egraph/compiled.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace loopegg {

CompiledRewrite::CompiledRewrite(Rewrite rule) : rule_(std::move(rule)), name_(rule_.name), query_(make_query(rule_.left)) {
    if (rule_.left.empty() || rule_.right.empty()) throw UserError(Diagnostic{"rule '" + rule_.name + "' lacks a side", rule_.where});
    for (const Atom& a : query_.atoms)
        if (a.children.size() > 64) throw UserError(Diagnostic{"rule '" + rule_.name + "' has an operator with more than 64 children", rule_.where});
    for (const Atom& a : query_.atoms)
        if (a.op.empty() && query_.atoms.size() > 1)
            throw UserError(Diagnostic{"rule '" + rule_.name + "' has a bare variable next to other patterns", rule_.where, "give the variable a pattern"});
    sources_.assign(query_.slots.size(), {none, none});
    for (std::uint32_t i = 0; i < query_.atoms.size(); ++i) {
        const Atom& a = query_.atoms[i];
        if (sources_[a.root].atom == none) sources_[a.root] = {i, none};
        for (std::uint32_t k = 0; k < a.children.size(); ++k)
            if (sources_[a.children[k]].atom == none) sources_[a.children[k]] = {i, k};
    }
    for (std::size_t i = 0; i < rule_.choices.size(); ++i) {
        std::vector<Place> needs;
        for (Symbol v : rule_.choices[i].needs) {
            const Place p = place_of(v);
            if (p == none || p >= choice_place(i)) unbound(v, rule_.choices[i].text);
            needs.push_back(p);
        }
        choice_needs_.push_back(std::move(needs));
    }
    for (std::uint32_t g = 0; g < rule_.guards.size(); ++g) {
        std::vector<std::uint32_t> slots;
        bool late = static_cast<bool>(rule_.guards[g].batch);
        for (Symbol v : rule_.guards[g].needs) {
            if (v != result_variable && place_of(v) == none) unbound(v, rule_.guards[g].text);
            slots.push_back(query_.slot(v));
            late |= slots.back() == none;
        }
        if (late) late_guards_.push_back(g), slots.assign(1, none);
        guard_slots_.push_back(std::move(slots));
    }
    for (std::uint32_t i = 0; i < query_.atoms.size(); ++i) plans_.push_back(make_plan(query_, i, guard_slots_));
    for (const Rooted& r : rule_.right) {
        std::uint32_t at = none;
        for (std::uint32_t i = 0; i < rule_.left.size(); ++i)
            if (rule_.left[i].root == r.root) at = i;
        if (at == none)
            throw UserError(Diagnostic{"rule '" + rule_.name + "' concludes about " + r.root.text() + ", which is no root of its left side", rule_.where});
        Conclusion c{query_.roots[at], add_builds(r.term)};
        if (c.place >= build_place(0)) c.build = c.place - static_cast<Place>(build_place(0));
        conclusions_.push_back(c);
    }
}

Place CompiledRewrite::place_of(Symbol variable) const {
    const std::uint32_t s = query_.slot(variable);
    if (s != none) return s;
    for (std::size_t i = 0; i < rule_.choices.size(); ++i)
        if (rule_.choices[i].variable == variable) return static_cast<Place>(choice_place(i));
    return none;
}

std::vector<Place> CompiledRewrite::places_of(const std::vector<Symbol>& needs) const {
    std::vector<Place> out;
    for (Symbol v : needs) out.push_back(v == result_variable ? none : place_of(v));
    return out;
}

Place CompiledRewrite::add_builds(const Term& t) {
    if (t.size() == 0 && is_variable(t.op())) {
        const Place p = place_of(t.op());
        if (p == none) unbound(t.op(), "the right side");
        return p;
    }
    Build b{t.op(), {}};
    for (const Term& c : t.children()) b.children.push_back(add_builds(c));
    for (std::size_t i = 0; i < builds_.size(); ++i)  // equal parts are built once
        if (builds_[i].op == b.op && builds_[i].children == b.children) return static_cast<Place>(build_place(i));
    builds_.push_back(std::move(b));
    return static_cast<Place>(build_place(builds_.size() - 1));
}

void CompiledRewrite::unbound(Symbol variable, const std::string& in) const {
    throw UserError(Diagnostic{"rule '" + rule_.name + "': " + in + " uses " + variable.text() + ", which the left side does not bind", rule_.where});
}

}  // namespace loopegg
