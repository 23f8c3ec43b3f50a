#include "rewrite/plan_rules.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/places.hpp"
#include "egraph/runner.hpp"
#include "nest/judge/isl_judge.hpp"
#include "nest/plan/site_form.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/grammar.hpp"
#include "rewrite/rule_books.hpp"

namespace loopegg {
namespace {

bool is_variable(const Term& t) { return t.size() == 0 && loopegg::is_variable(t.op()); }

Term restored(const std::string& how, const Term& nest) { return how.empty() ? nest : Term("restore", {Term(how), nest}); }

bool cuts(const Term& pattern) { return pattern.is("cat", 2) || std::any_of(pattern.children().begin(), pattern.children().end(), cuts); }

// An instance of a rule's left side that is equal to a nest, with what its variables stand for.
class Instance {
public:
    Instance(const Rule& rule, const Application& a, const Term& nest) : rule_(rule), a_(a), form_(nest) {
        const NestParts parts = nest_parts(nest);
        Term pattern = rule.left.front().term;
        if (pattern.is("restore", 2)) {
            if (parts.restore.empty()) throw Refusal("the rule is for a nest whose outputs are restored");
            bind(pattern[0], Term(parts.restore));
            pattern = pattern[1];
        } else if (!parts.restore.empty()) {
            throw Refusal("the outputs of the nest are restored already ('" + parts.restore + "'), and the rule does not say what becomes of that");
        }
        if (!pattern.is("nest", 2) || !is_variable(pattern[0])) throw Refusal("the rule is not one over single nests");
        bind(pattern[0], parts.statement);
        nest_ = restored(parts.restore, Term("nest", {parts.statement, schedule(pattern[1], 0, form_.parts())}));
    }

    const Term& nest() const { return nest_; }
    const std::map<Symbol, Term>& bound() const { return bound_; }

    // The rule with the values of the plan in place of its lists.
    Rule with_values() {
        Rule rule = rule_;
        for (ChoiceCall& c : rule.choices) {
            if (c.computed) continue;
            c.values = {value_of(c)}, c.list = nullptr, c.arguments.clear();
            bound_[c.variable] = c.values.front();
        }
        return rule;
    }

private:
    void bind(const Term& variable, const Term& value) { bound_[variable.op()] = value; }

    const Term& argument(Symbol variable) const {
        const auto it = a_.with.find(variable.text());
        if (it == a_.with.end()) throw Refusal(rule_.name + " needs " + variable.text());
        return it->second;
    }

    Term value_of(const ChoiceCall& c) const {
        const bool words = !c.list && std::none_of(c.values.begin(), c.values.end(), [](const Term& v) { return v.integer().has_value(); });
        if (!words) return Term(form_.number(part_, argument(c.variable)));
        const Term word = a_.with.contains(c.variable.text()) || a_.restore.empty() ? argument(c.variable) : Term(a_.restore);
        if (std::find(c.values.begin(), c.values.end(), word) == c.values.end())
            throw Refusal("'" + to_string(word) + "' is no value of " + c.variable.text() + ": expected one of " + c.text);
        return word;
    }

    Term schedule(const Term& pattern, std::size_t first, std::size_t count) {
        if (is_variable(pattern)) {
            Term all = form_.list(first + count - 1);
            for (std::size_t p = first + count - 1; p-- > first;) all = Term("cat", {form_.list(p), all});
            bind(pattern, all);
            return all;
        }
        if (pattern.is("cat", 2)) {
            if (count < 2) throw Refusal("the rule is for a domain that was cut in two: cut-domain comes first");
            const Term low = schedule(pattern[0], first, 1);
            return Term("cat", {low, schedule(pattern[1], first + 1, count - 1)});
        }
        if (count != 1) throw Refusal("the rule is for one part of the domain, and there are " + std::to_string(count));
        part_ = first;
        std::vector<Term> outer;
        Term rest = pattern;
        for (; rest.is("at", 2) && is_variable(rest[0]); rest = rest[1]) {
            outer.push_back(form_.axis(first, argument(rest[0].op())));
            bind(rest[0], outer.back());
        }
        if (!is_variable(rest)) throw Refusal("the rule's left side asks for more than loops in a row: it cannot be typed in a plan");
        const Term made = form_.list(first, outer);
        Term inner = made;
        for (std::size_t i = 0; i < outer.size(); ++i) inner = inner[1];
        bind(rest, inner);
        return made;
    }

    const Rule& rule_;
    const Application& a_;
    SiteForm form_;
    std::size_t part_ = 0;  // the part of the domain that expressions are about
    std::map<Symbol, Term> bound_;
    Term nest_;
};

// Throws Refusal with the words of the first guard that refuses.
[[noreturn]] void refuse(EGraph& graph, const Rewrite& rewrite, const std::map<Symbol, Term>& bound) {
    for (const Guard& guard : rewrite.guards) {
        if (!guard.test) continue;
        std::vector<ClassId> classes;
        for (const Symbol& variable : guard.needs)
            if (const auto it = bound.find(variable); it != bound.end()) classes.push_back(graph.add(it->second));
        if (classes.size() != guard.needs.size()) continue;
        if (const Verdict v = guard.test(graph, classes); !v.allowed) throw Refusal(guard.text + " does not hold: " + v.why);
    }
    throw Refusal("some number that its right side computes is no whole number here");
}

}  // namespace

std::vector<std::string> PlanRules::names() const {
    std::vector<std::string> all;
    for (const auto& book : books_)
        for (const Rule* rule : book->rules()) all.push_back(rule->name);
    return all;
}

Term PlanRules::apply_to(const Rule& rule, const Application& a, const Term& nest) const {
    Instance instance(rule, a, nest);
    EGraph graph;
    Binding binding;
    binding.facts = std::make_shared<NestAnalysis>();
    graph.attach(binding.facts);
    const ClassId root = graph.add(instance.nest());
    const Rule chosen = instance.with_values();
    const std::vector<Rewrite> rewrites = bind_rule(chosen, binding);
    RunOptions once;
    once.limits.iterations = 1;
    Runner(graph, rewrites).run(once);
    const auto& edges = graph.edges();
    const auto edge = std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return graph.find(e.from) == graph.find(root); });
    if (edge == edges.end()) refuse(graph, rewrites.front(), instance.bound());
    const Term made = graph.smallest_term(graph.find(edge->to));
    const NestParts before = nest_parts(instance.nest()), after = nest_parts(made);
    if (!isl_restricts(statement_of(before.statement), before.schedule, after.schedule)) throw Refusal("with these values nothing is left out, or all");
    return made;
}

Term PlanRules::apply(const Application& a, const Term& nest) const {
    const Rule* rule = nullptr;
    for (const auto& book : books_)
        if (!rule) rule = book->find_rule(a.rule);
    require(rule != nullptr, "a rule that one of the books names");
    const SiteForm form(nest);
    if (rule->arrow != Arrow::neural) {
        if (const auto it = a.with.find("?a"); it != a.with.end()) form.axis(a.part ? static_cast<std::size_t>(*a.part) : 0, it->second);  // it is there
        return nest;
    }
    if (cuts(rule->left.front().term)) return apply_to(*rule, a, nest);
    const NestParts parts = nest_parts(nest);
    std::string restore = parts.restore;
    Term whole;
    for (std::size_t p = form.parts(); p-- > 0;) {
        Term list = form.list(p);
        if (!a.part || static_cast<std::size_t>(*a.part) == p) {
            const NestParts made = nest_parts(apply_to(*rule, a, restored(parts.restore, Term("nest", {parts.statement, list}))));
            list = made.schedule, restore = made.restore;
        }
        whole = whole ? Term("cat", {list, whole}) : list;
    }
    return restored(restore, Term("nest", {parts.statement, whole}));
}

PlanRules plan_rules(const std::filesystem::path& file) {
    std::vector books{read_book(file)};
    for (const char* name : {"rules/tune-cpu.rules", "rules/tune-gpu.rules", "rules/fusion.rules", "rules/algorithms.rules"})
        books.push_back(read_book(shipped(name)));
    return PlanRules(std::move(books));
}

}  // namespace loopegg
