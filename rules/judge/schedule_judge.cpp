#include "rules/judge/schedule_judge.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "egraph/rewrite.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "rules/judge/arrangement_proof.hpp"
#include "rules/judge/schedule_proof.hpp"

namespace loopegg {
namespace {

using Fixed = std::map<std::string, std::int64_t>;

constexpr std::int64_t max_listed = 32, max_second = 8;  // factors are tried one by one up to here where they have no digits
constexpr std::size_t max_cases = 256;
constexpr int max_splits = 12, max_factors = 2;

// What one case of a rule came to.
struct Case {
    bool applies = false;
    MaybeFinding wrong{};
    std::string example{};
    std::vector<std::int64_t> extents{};  // of the axes in the example
    bool reorders = false;

    void join(Case other) {
        applies = applies || other.applies, reorders = reorders || other.reorders;
        if (!wrong && other.wrong) wrong = std::move(other.wrong), example = std::move(other.example), extents = std::move(other.extents);
    }
};

// A side as its parts; a rule over schedules has a schedule alone.
struct Side {
    Term restore, statement, schedule;
};

bool is_axis_term(const Term& t) { return is_axis_operator(t.op().text()) && t.size() > 0; }
bool is_axis_rule(const Rule& rule) { return is_axis_term(rule.left[0].term) || is_axis_term(rule.right[0].term); }

Side side_of(const Term& pattern) {
    if (pattern.is("restore", 2)) {
        Side inner = side_of(pattern[1]);
        inner.restore = pattern[0];
        return inner;
    }
    if (pattern.is("nest", 2)) return {{}, pattern[0], pattern[1]};
    return {{}, {}, pattern};
}

bool holds(const Term& pattern, const Term& part) {
    return pattern == part || std::any_of(pattern.children().begin(), pattern.children().end(), [&](const Term& c) { return holds(c, part); });
}

// A layout says where values are stored, not what they are. Where the statement has no such dimension, there is no such statement.
Term without_layouts(const Rule& rule, Term stmt) {
    for (; stmt.is("layout", 4); stmt = stmt[3]) {
        const std::string asked = fmt::format("(blocks {} {} {} {})", to_string(stmt[3]), to_string(stmt[0]), to_string(stmt[1]), to_string(stmt[2]));
        const bool allowed = std::any_of(rule.guards.begin(), rule.guards.end(), [&](const GuardCall& g) { return g.text == asked; });
        if (!allowed && !holds(rule.left[0].term, stmt)) throw NoForm("no guard " + asked + " says that there is such a layout");
    }
    return stmt;
}

bool restricts_only(const Term& schedule, const std::string& axis) {
    if ((schedule.is("span", 3) && to_string(schedule[0]) != axis) || schedule.is("diag", 3)) return false;
    return std::all_of(schedule.children().begin(), schedule.children().end(), [&](const Term& c) { return restricts_only(c, axis); });
}

// Copies and zeros stand for any outputs; another way is for some axes alone, so a guard must say that the restricted axis is one of them.
void check_restored(const Rule& rule, const Side& right) {
    const std::string how = to_string(right.restore);
    const auto of_any_axis = [](const Term& word) { return word.is("repeat", 0) || word.is("zero", 0); };
    std::vector<Term> ways{right.restore};
    for (const ChoiceCall& c : rule.choices)
        if (c.variable == right.restore.op() && !c.values.empty()) ways = c.values;
    if (std::all_of(ways.begin(), ways.end(), of_any_axis)) return;
    const bool asked = std::any_of(rule.guards.begin(), rule.guards.end(), [&](const GuardCall& g) {
        return g.guard->name == "comes-back" && g.arguments[0].text == how && restricts_only(right.schedule, g.arguments[1].text);
    });
    if (!asked) throw NoForm("no guard says that the restricted axis comes back by " + how + ": (comes-back " + how + " AXIS)");
}

// Statements stay as they are but for their layouts. Outputs come back as before.
void check_parts(const Rule& rule) {
    const Side left = side_of(rule.left[0].term), right = side_of(rule.right[0].term);
    if (bool(left.statement) != bool(right.statement)) throw NoForm("a nest becomes something else");
    const bool may_restore = rule.arrow == Arrow::neural && !left.restore;
    if (!(left.restore == right.restore) && !may_restore) throw NoForm("outputs come back in another way");
    if (right.restore && !left.restore) check_restored(rule, right);
    if (left.statement && !(without_layouts(rule, left.statement) == without_layouts(rule, right.statement))) throw NoForm("the statement is another one");
}

class ScheduleJudge {
public:
    explicit ScheduleJudge(const Rule& rule) : rule_(rule) {}

    RuleVerdict judge(std::vector<std::int64_t>* sizes) {
        RuleVerdict verdict;
        try {
            if (!is_axis_rule(rule_)) check_parts(rule_);
            Case all;
            for (const Fixed& fixed : cases()) {
                all.join(is_arrangement(rule_) ? arrangement() : with_factors(fixed, verdict, 0));
                if (all.wrong) break;
            }
            verdict.reorders_sums = all.reorders;
            if (sizes) *sizes = all.extents;
            if (all.wrong)
                verdict.why = (all.wrong->certain ? "" : "it could not be decided whether it ") + all.wrong->why, verdict.counterexample = all.example;
            else if (!all.applies)
                verdict.why = verdict.most.empty() ? "no sizes meet its conditions" : "no sizes meet its conditions, as far as factors were tried";
            else
                verdict.proof = verdict.most.empty() ? RuleVerdict::Proof::all_sizes : RuleVerdict::Proof::listed;
        } catch (const NoForm& none) {
            verdict.why = as_written(none.what());
        }
        return verdict;
    }

private:
    // A computed part of a side is a variable named '?' and its text; people read the text.
    static std::string as_written(std::string text) {
        for (std::size_t at; (at = text.find("?(")) != text.npos;) text.erase(at, 1);
        return text;
    }

    // One case for each choice from the lists of numbers that are written out.
    std::vector<Fixed> cases() const {
        std::vector<Fixed> all{{}};
        for (const ChoiceCall& c : rule_.choices) {
            if (c.values.empty() || !std::all_of(c.values.begin(), c.values.end(), [](const Term& t) { return t.integer().has_value(); })) continue;
            std::vector<Fixed> more;
            for (const Fixed& fixed : all)
                for (const Term& value : c.values) {
                    more.push_back(fixed);
                    more.back()[c.variable.text()] = *value.integer();
                }
            if (more.size() > max_cases) throw NoForm("its lists have too many values together");
            all = std::move(more);
        }
        return all;
    }

    // A factor that takes an axis apart in more ways than one is tried value by value.
    Case with_factors(const Fixed& fixed, RuleVerdict& verdict, int depth) {
        try {
            return prove(fixed);
        } catch (const NoForm& none) {
            const auto variable =
                std::find_if(none.symbols.begin(), none.symbols.end(), [&](const std::string& s) { return s[0] == '?' && !fixed.contains(s); });
            if (depth == max_factors || variable == none.symbols.end()) throw;
            const std::int64_t most = depth == 0 ? max_listed : max_second;
            verdict.most[*variable] = most;
            Case all;
            for (std::int64_t v = 1; v <= most && !all.wrong; ++v) {
                Fixed here = fixed;
                here[*variable] = v;
                all.join(with_factors(here, verdict, depth + 1));
            }
            return all;
        }
    }

    Case prove(const Fixed& fixed) {
        Sizes sizes(rule_, fixed);
        AxisSpace axes(sizes);
        for (int round = 0; round < max_splits; ++round) {
            try {
                return is_axis_rule(rule_) ? prove_axes(sizes, axes) : prove_schedules(sizes, axes);
            } catch (const AxisSpace::Split& split) {
                axes.split(split);
            }
        }
        throw NoForm("its axes are taken apart in too many ways");
    }

    Case prove_schedules(Sizes& sizes, AxisSpace& axes) {
        const ScheduleSide left = schedule_side(side_of(rule_.left[0].term).schedule, axes), right = schedule_side(side_of(rule_.right[0].term).schedule, axes);
        ScheduleProof proof(sizes, axes, left, right);
        const Agreement agreement = agreement_of(rule_, axes.atoms(), false);
        Case found;
        found.applies = proof.applies() && !agreement.tied.empty();
        if (!found.applies) return found;
        found.wrong = soundness(proof, agreement);
        if (!found.wrong) found.wrong = sums_of_sums(right, agreement.may_move);
        if (found.wrong) found.example = proof.described(found.wrong->example), found.extents = proof.extents(found.wrong->example);
        if (!found.wrong) found.reorders = reorders(proof, agreement_of(rule_, axes.atoms(), true));
        return found;
    }

    // Equal axes have equal values, and are defined at the same instances.
    Case prove_axes(Sizes& sizes, AxisSpace& axes) {
        if (rule_.arrow == Arrow::neural) throw NoForm("a neural rule restricts a nest, not an axis alone");
        const auto around = [](const Term& axis) { return Term("at", {axis, Term("done")}); };
        const ScheduleSide left = schedule_side(around(rule_.left[0].term), axes), right = schedule_side(around(rule_.right[0].term), axes);
        ScheduleProof proof(sizes, axes, left, right);
        const auto [a, b] = axes.values(rule_.left[0].term, rule_.right[0].term);
        Case found;
        found.applies = proof.applies();
        if (!found.applies) return found;
        found.wrong = proof.well_formed();
        if (!found.wrong) found.wrong = proof.same_instances();
        if (!found.wrong) found.wrong = proof.same_values(a, b);
        if (found.wrong) found.example = proof.described(found.wrong->example);
        return found;
    }

    MaybeFinding soundness(ScheduleProof& proof, const Agreement& agreement) const {
        if (auto wrong = proof.well_formed()) return wrong;
        if (auto wrong = rule_.arrow == Arrow::neural ? proof.fewer_instances() : proof.same_instances()) return wrong;
        if (auto wrong = proof.tells_apart()) return wrong;
        for (const auto& bound : agreement.bound) {
            if (auto wrong = proof.keeps_order(bound, "reverses a dependence")) return wrong;
            for (const SideLoop::Kind kind : {SideLoop::Kind::partial, SideLoop::Kind::tensor})
                if (auto wrong = proof.runs_apart(bound, kind, "sums up in parts what must keep its order")) return wrong;
        }
        for (const auto& tied : agreement.tied)
            if (auto wrong = proof.runs_apart(tied, SideLoop::Kind::apart, "runs instances at once that write one output element or wait for each other"))
                return wrong;
        return {};
    }

    static MaybeFinding sums_of_sums(const ScheduleSide& side, const std::set<std::string>& may_move) {
        for (const SidePath& path : side.paths)
            for (const SideLoop& loop : path.loops)
                for (const std::string& atom : loop.atoms)
                    if (loop.kind == SideLoop::Kind::partial && may_move.contains(atom))
                        return Finding{true, "takes sums in parts along " + atom + ", which may be no sum", {}};
        return {};
    }

    // Whether a sum may be taken in another order where the user forbids that. There no valid schedule has partial sums, and guards that ask for freedom
    // do not hold.
    bool reorders(ScheduleProof& proof, const Agreement& strict) const {
        if (strict.tied.empty()) return false;
        const auto before = special_loops(rule_.left[0].term), after = special_loops(rule_.right[0].term);
        if (before.contains("partial")) return false;
        if (before != after) return true;
        return std::any_of(strict.tied.begin(), strict.tied.end(), [&](const auto& tied) { return proof.keeps_order(tied, "").has_value(); });
    }

    Case arrangement() const {
        const ArrangementFinding of = prove_arrangement(rule_);
        Case found{.applies = true, .reorders = of.reorders_sums};
        if (!of.wrong.empty()) found.wrong = Finding{true, of.wrong, {}};
        return found;
    }

    const Rule& rule_;
};

// A rule that goes both ways is two rules. A list is used only where the pattern does not bind its variable.
Rule one_way(const Rule& rule, bool backwards) {
    Rule made = rule;
    if (rule.arrow == Arrow::both) made.arrow = Arrow::forward;
    if (backwards) std::swap(made.left, made.right);
    const std::vector<Symbol> bound = variables_of(made.left[0].term);
    std::erase_if(made.choices, [&](const ChoiceCall& c) { return std::find(bound.begin(), bound.end(), c.variable) != bound.end(); });
    return made;
}

// What the rule rounds operands to, or no longer rounds them to, and no guard of its author asks for.
std::set<std::string> roundings(const Rule& rule) {
    std::set<std::string> all = is_arrangement(rule) ? arrangement_roundings(rule) : std::set<std::string>{};
    if (!is_arrangement(rule)) {
        const auto before = special_loops(rule.left[0].term), after = special_loops(rule.right[0].term);
        std::vector<std::string> changed;
        std::set_symmetric_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(changed));
        for (const std::string& place : changed)
            if (place != "partial") all.insert(place.starts_with(tensor_place) ? place.substr(tensor_place.size()) : place);
    }
    for (const std::string& asked : asked_roundings(rule)) all.erase(asked);
    return all;
}

}  // namespace

RuleVerdict prove_schedule_rule(const Rule& rule, std::vector<std::int64_t>* sizes) {
    const Rule forwards = one_way(rule, false), backwards = one_way(rule, true);
    RuleVerdict verdict = ScheduleJudge(forwards).judge(sizes);
    if (rule.arrow == Arrow::both && verdict.accepted()) {
        RuleVerdict other = ScheduleJudge(backwards).judge(nullptr);
        other.reorders_sums = other.reorders_sums || verdict.reorders_sums;
        other.most.insert(verdict.most.begin(), verdict.most.end());
        if (other.accepted() && !other.most.empty()) other.proof = RuleVerdict::Proof::listed;
        verdict = std::move(other);
    }
    verdict.roundings = roundings(rule);
    return verdict;
}

}  // namespace loopegg
