#include "rules/judge/roles.hpp"

#include <algorithm>

#include "nest/term/axis.hpp"
#include "rules/judge/axis_space.hpp"

namespace loopegg {
namespace {

using Roles = std::map<std::string, AxisRole>;

// The operator of the statement that a pattern names, where the pattern names one.
std::string statement_operator(const Term& pattern) {
    if (pattern.is("nest", 2)) {
        Term stmt = pattern[0];
        while (stmt.is("epilogue", 2) || stmt.is("layout", 4) || stmt.is("order", 3)) stmt = stmt[stmt.size() - 1];
        return stmt.size() > 0 ? stmt.op().text() : "";
    }
    for (const Term& child : pattern.children())
        if (std::string op = statement_operator(child); !op.empty()) return op;
    return {};
}

// Whether no instance of the rule's statement waits for another.
bool is_orderless(const Rule& rule) {
    const std::string op = statement_operator(rule.left[0].term);
    if (!op.empty() && op != "recurrence") return true;
    return std::any_of(rule.guards.begin(), rule.guards.end(),
                       [](const GuardCall& g) { return g.guard->name == "convolution" || g.guard->name == "weighted-sum" || g.guard->name == "has-weights"; });
}

// Axes that the left side sums up in parts already.
void collect_summed(const Term& pattern, std::set<std::string>& into) {
    if (pattern.is("partial", 3) && pattern[1].size() == 0) into.insert(pattern[1].op().text());
    for (const Term& child : pattern.children()) collect_summed(child, into);
}

bool allows(const GuardCall& g, const Roles& roles, bool strict_fp) {
    const std::string& name = g.guard->name;
    if (name == "sums-may-differ") return !strict_fp;
    std::vector<AxisRole> of;
    for (const Expression& e : g.arguments) {
        const auto at = e.form == Expression::Form::variable ? roles.find(e.name.text()) : roles.end();
        if (at == roles.end()) return name != "reassociable" || !strict_fp;
        of.push_back(at->second);
    }
    const auto ordered = [&](std::size_t i) { return of[i] != AxisRole::parallel; };
    const auto sequential = [&](std::size_t i) { return of[i] == AxisRole::sequential; };
    if (name == "permutable") return strict_fp ? !(ordered(0) && ordered(1)) : !(sequential(0) && sequential(1));
    if (name == "parallel") return !ordered(0);
    if (name == "reduction") return of[0] == AxisRole::reduction;
    if (name == "reassociable") return of[0] == AxisRole::reduction && !strict_fp;
    if (name == "channels") return !ordered(0) && of[1] == AxisRole::reduction;
    return true;
}

// A larger set says more, so only the smallest ones have to be judged.
void add_smallest(std::vector<std::set<std::string>>& sets, const std::set<std::string>& set) {
    const auto within = [](const auto& a, const auto& b) { return std::includes(b.begin(), b.end(), a.begin(), a.end()); };
    if (std::any_of(sets.begin(), sets.end(), [&](const auto& s) { return within(s, set); })) return;
    std::erase_if(sets, [&](const auto& s) { return within(set, s); });
    sets.push_back(set);
}

}  // namespace

Agreement agreement_of(const Rule& rule, const std::set<std::string>& atoms, bool strict_fp) {
    if (atoms.size() > 8) throw NoForm("it has too many axes to judge");
    const bool orderless = is_orderless(rule);
    std::set<std::string> summed;
    collect_summed(rule.left[0].term, summed);
    Agreement agreement;
    Roles roles;
    const auto choose = [&](const auto& self, std::set<std::string>::const_iterator at) -> void {
        if (at == atoms.end()) {
            if (!std::all_of(rule.guards.begin(), rule.guards.end(), [&](const GuardCall& g) { return allows(g, roles, strict_fp); })) return;
            std::set<std::string> tied, bound;
            for (const auto& [atom, role] : roles) {
                if (role == AxisRole::parallel) tied.insert(atom), agreement.may_move.insert(atom);
                if (role != AxisRole::sequential) bound.insert(atom);
            }
            add_smallest(agreement.tied, tied), add_smallest(agreement.bound, bound);
            return;
        }
        const auto leaf = axis_name(Term(*at));
        for (const AxisRole role : {AxisRole::parallel, AxisRole::reduction, AxisRole::sequential}) {
            if (leaf && leaf->extent > 0 ? role_of(leaf->name) != role : orderless && role == AxisRole::sequential) continue;
            if (role == AxisRole::parallel && summed.contains(*at)) continue;
            roles[*at] = role;
            self(self, std::next(at));
        }
    };
    choose(choose, atoms.begin());
    return agreement;
}

std::set<std::string> asked_roundings(const Rule& rule) {
    std::set<std::string> all;
    for (const GuardCall& g : rule.guards)
        if (g.guard->name == "may-round" && !g.arguments.empty()) all.insert(g.arguments[0].name.text());
    return all;
}

}  // namespace loopegg
