#include "rules/judge/schedule_side.hpp"

#include <algorithm>

#include "egraph/rewrite.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "rules/judge/axis_space.hpp"

namespace loopegg {
namespace {

class SideReader {
public:
    explicit SideReader(AxisSpace& axes) : axes_(axes) {}

    void read(const Term& sched, SidePath path) {
        if (sched.size() == 0) return end(sched, std::move(path));
        if (sched.is("cat", 2)) return cut(sched, path);
        if (sched.is("stage", 2)) return read(sched[1], std::move(path));  // a copy of what the rest touches changes no value
        if (!is_loop_operator(sched.op().text())) throw NoForm("'" + to_string(sched) + "' is no schedule that the judge knows");
        path.loops.push_back(loop(sched, path));
        read(loop_rest(sched), std::move(path));
    }
    ScheduleSide take() { return std::move(side_); }

private:
    void end(const Term& sched, SidePath path) {
        if (is_variable(sched.op())) {
            if (sched.op().text()[1] == '(') throw NoForm("the schedule " + sched.op().text().substr(1) + " is computed");
            path.tail = sched.op().text();
        } else if (!sched.is("done", 0)) {
            throw NoForm("'" + to_string(sched) + "' is no schedule that the judge knows");
        }
        constexpr std::size_t max_paths = 8, max_loops = 24;
        if (side_.paths.size() == max_paths || path.loops.size() > max_loops) throw NoForm("its schedules are too large to judge");
        side_.paths.push_back(std::move(path));
    }

    void cut(const Term& sched, const SidePath& path) {
        for (std::size_t part : {0u, 1u}) {
            SidePath here = path;
            here.loops.push_back({.kind = SideLoop::Kind::serial, .word = "cat", .texts = {}, .constant = static_cast<std::int64_t>(part)});
            read(sched[part], std::move(here));
        }
    }

    SideLoop loop(const Term& sched, SidePath& path) {
        const std::string& op = sched.op().text();
        SideLoop made{.kind = SideLoop::Kind::serial, .word = op, .texts = {}};
        if (op == "par" || op == "vec") made.kind = SideLoop::Kind::apart;
        if (op == "bind") made.kind = is_tensor_place(sched[0]) ? SideLoop::Kind::tensor : SideLoop::Kind::apart, made.word = to_string(sched[0]);
        if (op == "partial") made.kind = SideLoop::Kind::partial, made.word = "partial " + to_string(sched[0]);
        const auto same_index = [&](const SideLoop& outer) { return outer.word == made.word; };
        if (op == "bind" && made.kind == SideLoop::Kind::apart && made.word != "vthread" && std::any_of(path.loops.begin(), path.loops.end(), same_index))
            throw NoForm("binds two loops to " + made.word);
        const Term& axis = loop_axis(sched);
        const AxisValue value = axes_.value(axis, path.conditions, side_.needs);
        for (const AxisPiece& piece : value.pieces) made.texts.push_back(piece.text);
        for (const std::string& digit : value.walked)
            if (!path.walked.insert(digit).second) throw NoForm("walks a part of " + to_string(axis) + " twice");
        note_atoms(axis, made.atoms);
        path.atoms.insert(made.atoms.begin(), made.atoms.end());
        return made;
    }

    static void note_atoms(const Term& axis, std::set<std::string>& into) {
        const bool number = axis.size() == 0 && axis.integer();
        if (axis.size() == 0 && !number) into.insert(axis.op().text());
        const bool factor_last = axis.is("quo", 2) || axis.is("rem", 2) || axis.is("span", 3);
        for (std::size_t i = axis.is("diag", 3) ? 1 : 0; i < (factor_last ? 1 : axis.size()); ++i) note_atoms(axis[i], into);
    }

    AxisSpace& axes_;
    ScheduleSide side_;
};

}  // namespace

ScheduleSide schedule_side(const Term& schedule, AxisSpace& axes) {
    SideReader reader(axes);
    reader.read(schedule, {});
    return reader.take();
}

std::multiset<std::string> special_loops(const Term& t) {
    std::multiset<std::string> all;
    if (t.is("bind", 3) && (is_tensor_place(t[0]) || is_variable(t[0].op()))) all.insert(to_string(t[0]));
    if (t.is("partial", 3)) all.insert("partial");
    for (const Term& child : t.children()) all.merge(special_loops(child));
    return all;
}

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
    if (name == "allow-reassociation") return !strict_fp;
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
