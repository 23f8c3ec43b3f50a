// Turns a rule as it was read into the engine's form: names become callbacks over the facts of one e-graph.
#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "rules/expressions.hpp"
#include "rules/limits.hpp"
#include "rules/rule.hpp"

namespace loopegg {
namespace {

const Symbol root_variable{"?root"};

// Expressions with every variable replaced by its place among the classes that the engine gives.
class Evaluator {
public:
    Evaluator(std::vector<Expression> arguments, std::shared_ptr<Analysis> facts)
        : arguments_(std::move(arguments)), needs_(variables_of(arguments_)), facts_(std::move(facts)) {}

    const std::vector<Symbol>& needs() const { return needs_; }

    std::vector<Argument> evaluate(const EGraph& graph, std::span<const ClassId> classes) const {
        std::vector<Argument> values;
        for (const Expression& e : arguments_) values.push_back(value(e, graph, classes));
        return values;
    }
    const Analysis* facts() const { return facts_.get(); }

private:
    Argument value(const Expression& e, const EGraph& graph, std::span<const ClassId> classes) const {
        Argument result;
        if (e.form == Expression::Form::number) result.number = e.number;
        if (e.form == Expression::Form::word) result.word = e.name;
        if (e.form == Expression::Form::variable) {
            const auto at = static_cast<std::size_t>(std::find(needs_.begin(), needs_.end(), e.name) - needs_.begin());
            result.eclass = graph.find(classes[at]);
            result.number = graph.integer(result.eclass);
        }
        if (e.form == Expression::Form::call) {
            std::vector<Argument> inner;
            for (const Expression& a : e.arguments) inner.push_back(value(a, graph, classes));
            const Question question{graph, facts_.get(), inner};
            const bool known =
                std::all_of(inner.begin(), inner.end(), [](const Argument& a) { return a.eclass != none || a.number || a.terms || !a.word.empty(); });
            if (e.function->terms) {
                if (known) result.terms = e.function->terms(question);
            } else
                result.number = e.function->value(question);
        }
        return result;
    }

    std::vector<Expression> arguments_;
    std::vector<Symbol> needs_;
    std::shared_ptr<Analysis> facts_;
};

bool facts_only(const Expression& e) {
    return (e.form != Expression::Form::call || e.function->facts_only) && std::all_of(e.arguments.begin(), e.arguments.end(), facts_only);
}
bool facts_only(const std::vector<Expression>& all) {
    return std::all_of(all.begin(), all.end(), [](const Expression& e) { return facts_only(e); });
}

Guard bind_guard(const GuardCall& call, const Rule& rule, const Binding& binding) {
    Guard guard;
    guard.text = call.text;
    if (call.guard->capacity) {
        guard.needs = {rule.left.front().root.empty() ? root_variable : rule.left.front().root, result_variable};
        guard.facts_only = true;
        guard.batch = [ask = binding.capacity, name = Symbol(rule.name), measure = call.measure](const EGraph& graph,
                                                                                                 std::span<const std::vector<ClassId>> all) {
            std::vector<CapacityProposal> proposals;
            for (const auto& classes : all) proposals.push_back({name, graph.find(classes[0]), graph.find(classes[1]), measure});
            if (ask) return ask(graph, proposals);
            return std::vector<Verdict>(all.size(), Verdict{true, "no capacity oracle was queried", {{"oracle", nullptr}}});
        };
        return guard;
    }
    auto evaluator = std::make_shared<Evaluator>(call.arguments, binding.facts);
    guard.needs = evaluator->needs();
    guard.facts_only = call.guard->facts_only && facts_only(call.arguments);
    guard.test = [evaluator, test = call.guard->test](const EGraph& graph, std::span<const ClassId> classes) {
        return test(Question{graph, evaluator->facts(), evaluator->evaluate(graph, classes)});
    };
    return guard;
}

Choice bind_choice(const ChoiceCall& call, const Binding& binding) {
    Choice choice;
    choice.variable = call.variable, choice.text = call.text;
    if (call.computed) {
        auto evaluator = std::make_shared<Evaluator>(std::vector{*call.computed}, binding.facts);
        choice.needs = evaluator->needs();
        choice.facts_only = facts_only(*call.computed);
        choice.values = [evaluator](const EGraph& graph, std::span<const ClassId> classes) {
            Argument made = std::move(evaluator->evaluate(graph, classes)[0]);
            if (made.terms) return std::move(*made.terms);
            return made.number ? std::vector{Term(*made.number)} : std::vector<Term>{};
        };
    } else if (call.list) {
        auto evaluator = std::make_shared<Evaluator>(call.arguments, binding.facts);
        choice.needs = evaluator->needs();
        choice.facts_only = call.list->facts_only && facts_only(call.arguments);
        choice.values = [evaluator, values = call.list->values](const EGraph& graph, std::span<const ClassId> classes) {
            return values(Question{graph, evaluator->facts(), evaluator->evaluate(graph, classes)});
        };
    } else {
        choice.facts_only = true;
        choice.values = [values = call.values](const EGraph&, std::span<const ClassId>) { return values; };
    }
    return choice;
}

bool binds(const std::vector<Rooted>& side, Symbol variable) {
    return std::any_of(side.begin(), side.end(), [&](const Rooted& r) {
        const auto all = variables_of(r.term);
        return std::find(all.begin(), all.end(), variable) != all.end();
    });
}

Rewrite bind_direction(const Rule& rule, const Binding& binding, bool backwards) {
    Rewrite result;
    result.name = rule.name;
    result.left = backwards ? rule.right : rule.left;
    result.right = backwards ? rule.left : rule.right;
    result.relation = rule.arrow == Arrow::neural ? Relation::neural : Relation::exact;
    result.backwards = backwards;
    result.where = rule.where;
    for (const GuardCall& g : rule.guards) {
        if (g.guard->capacity && result.left.front().root.empty()) result.left.front().root = result.right.front().root = root_variable;
        result.guards.push_back(bind_guard(g, rule, binding));
    }
    for (const ChoiceCall& c : rule.choices)
        if (!binds(result.left, c.variable)) result.choices.push_back(bind_choice(c, binding));
    return result;
}

}  // namespace

RunOptions limits_of(const Phase& phase) {
    RunOptions run;
    if (phase.iterations) run.limits.iterations = static_cast<std::size_t>(*phase.iterations);
    if (phase.nodes) run.limits.nodes = static_cast<std::size_t>(*phase.nodes);
    if (phase.seconds) run.limits.seconds = *phase.seconds;
    if (phase.scheduler == "backoff") run.scheduler = Scheduler::backoff;
    return run;
}

std::vector<MeasureCondition> conditions_of_step(const Rule& rule, std::span<const MeasureCondition> phase) {
    std::vector<MeasureCondition> all;
    const auto add = [&](const MeasureCondition& c) {
        if (std::find(all.begin(), all.end(), c) == all.end()) all.push_back(c);
    };
    for (const GuardCall& g : rule.guards) {
        if (g.measure) add(*g.measure);
        if (g.guard->capacity && !g.measure) std::for_each(phase.begin(), phase.end(), add);
    }
    return all;
}

std::vector<Rewrite> bind_rule(const Rule& rule, const Binding& binding) {
    std::vector<Rewrite> result{bind_direction(rule, binding, false)};
    if (rule.arrow == Arrow::both) result.push_back(bind_direction(rule, binding, true));
    return result;
}

std::vector<Rewrite> bind_rules(std::span<const Rule* const> rules, const Binding& binding) {
    std::vector<Rewrite> result;
    for (const Rule* rule : rules)
        for (Rewrite& r : bind_rule(*rule, binding)) result.push_back(std::move(r));
    return result;
}

}  // namespace loopegg
