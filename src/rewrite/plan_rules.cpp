#include "rewrite/plan_rules.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/places.hpp"
#include "egraph/egraph.hpp"
#include "nest/judge/isl_judge.hpp"
#include "nest/plan/site_form.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/grammar.hpp"
#include "rewrite/rule_books.hpp"

namespace loopegg {
namespace {

bool is_variable(const Term& t) { return t.size() == 0 && loopegg::is_variable(t.op()); }

bool cuts(const Term& pattern) { return pattern.is("cat", 2) || std::any_of(pattern.children().begin(), pattern.children().end(), cuts); }

void axes_of_loops(const Term& pattern, std::vector<std::string>& all) {
    if (pattern.is("at", 2) && is_variable(pattern[0])) all.push_back(pattern[0].op().text());
    for (const Term& child : pattern.children()) axes_of_loops(child, all);
}

bool holds(const std::vector<Symbol>& all, Symbol one) { return std::find(all.begin(), all.end(), one) != all.end(); }

// What a rule is applied from, and what it makes.
struct Sides {
    Term left, right;
};

// A rule over schedules alone is applied to the whole schedule of a nest.
Sides sides_of(const Rule& rule, bool backwards) {
    Sides sides{rule.left.front().term, rule.right.front().term};
    if (backwards) std::swap(sides.left, sides.right);
    if (sides.left.is("at", 2) || sides.left.is("cat", 2)) {
        const Term statement("?statement");
        sides = {Term("nest", {statement, sides.left}), Term("nest", {statement, sides.right})};
    }
    return sides;
}

// The variables that only the right side has.
std::vector<Symbol> made_by(const Sides& sides) {
    std::vector<Symbol> made = variables_of(sides.right);
    std::erase_if(made, [left = variables_of(sides.left)](Symbol v) { return holds(left, v); });
    return made;
}

// A rule at a nest: an instance of its left side that is equal to the nest, with what its variables represent.
class Instance {
public:
    Instance(const Rule& rule, const Application& a, const Term& nest) : rule_(rule), a_(a), sides_(sides_of(rule, a.backwards)), form_(nest) {
        const NestParts parts = nest_parts(nest);
        Term pattern = sides_.left;
        if (pattern.is("restore", 2)) {
            if (parts.restore.empty()) throw Refusal("the rule is for a nest whose outputs are restored");
            bind(pattern[0], Term(parts.restore));
            pattern = pattern[1];
        }
        if (!pattern.is("nest", 2) || !is_variable(pattern[0])) throw Refusal("the rule is not one over single nests");
        bind(pattern[0], parts.statement);
        nest_ = nest_from({parts.statement, schedule(pattern[1], 0, form_.parts()), parts.restore});
    }

    // The right side with the values of the plan. Throws Refusal with the words of the first guard that refuses. isl alone decides on an exact rule.
    Term right_side() {
        if (a_.backwards)
            for (const Symbol& v : made_by(sides_)) bound_[v] = Term(form_.number(part_, argument(v)));
        else
            bind_choices();
        const Term made = with_values(sides_.right);
        check(made);
        return made;
    }

private:
    void bind_choices() {
        EGraph graph;
        Binding binding;
        binding.facts = std::make_shared<NestAnalysis>();
        graph.attach(binding.facts);
        graph.add(nest_);
        const Rewrite rewrite = bind_rule(rule_, binding).front();
        for (const ChoiceCall& c : rule_.choices)
            if (!c.computed && !bound_.contains(c.variable)) bind_value(c, rewrite);
        if (rule_.arrow == Arrow::neural) ask_guards(rewrite, graph);
        for (const Choice& c : rewrite.choices) {
            if (bound_.contains(c.variable)) continue;
            const auto classes = classes_of(c.needs, graph);
            if (!classes) continue;  // with_values() shows what is missing
            const std::vector<Term> values = c.values(graph, *classes);
            if (values.empty()) throw Refusal(c.text + " is no whole number here");
            bound_[c.variable] = values.front();
        }
    }

    void bind(const Term& variable, const Term& value) { bound_[variable.op()] = value; }

    const Term& argument(Symbol variable) const {
        const auto it = a_.with.find(variable.text());
        if (it == a_.with.end()) throw Refusal(rule_.name + " needs " + variable.text());
        return it->second;
    }

    void ask_guards(const Rewrite& rewrite, EGraph& graph) const {
        for (std::size_t i = 0; i < rewrite.guards.size(); ++i) {
            const Guard& guard = rewrite.guards[i];
            const auto classes = classes_of(guard.needs, graph);  // none where the guard asks about a variable that ?w replaces
            if (!guard.test || !classes || rule_.guards[i].guard->bounds_search) continue;
            if (const Verdict v = guard.test(graph, *classes); !v.allowed) throw Refusal(guard.text + " does not hold: " + v.why);
        }
    }

    void bind_value(const ChoiceCall& c, const Rewrite& rewrite) {
        const bool words = !c.list && std::none_of(c.values.begin(), c.values.end(), [](const Term& v) { return v.integer().has_value(); });
        if (words)
            bound_[c.variable] = word_of(c);
        else if (const Choice* kept = kept_instead_of(c, rewrite))
            bound_[kept->variable] = Term(form_.number(part_, argument(kept_variable)));
        else
            bound_[c.variable] = Term(form_.number(part_, argument(c.variable)));
    }

    Term word_of(const ChoiceCall& c) const {
        if (!a_.with.contains(c.variable.text()) && a_.restore.empty())
            throw Refusal(rule_.name + " needs " + c.variable.text() + ": \"restore\" gives one of " + c.text);
        const Term word = a_.with.contains(c.variable.text()) ? argument(c.variable) : Term(a_.restore);
        if (std::find(c.values.begin(), c.values.end(), word) == c.values.end())
            throw Refusal("'" + to_string(word) + "' is no value of " + c.variable.text() + ": expected one of " + c.text);
        return word;
    }

    // Where the rule only computes one number of its right side from a variable, a plan may give that number as ?w in place of the variable: a number that
    // no value of the variable leads to (5 of 8 channels).
    const Choice* kept_instead_of(const ChoiceCall& c, const Rewrite& rewrite) const {
        if (!a_.with.contains(kept_variable.text()) || holds(variables_of(rule_.right.front().term), c.variable)) return nullptr;
        const Choice* one = nullptr;
        for (const Choice& other : rewrite.choices) {
            if (other.variable == kept_variable) return nullptr;  // the rule has a ?w of its own
            if (!holds(other.needs, c.variable)) continue;
            if (one) return nullptr;
            one = &other;
        }
        return one;
    }

    std::optional<std::vector<ClassId>> classes_of(const std::vector<Symbol>& variables, EGraph& graph) const {
        std::vector<ClassId> classes;
        for (const Symbol& variable : variables) {
            const auto it = bound_.find(variable);
            if (it == bound_.end()) return {};
            classes.push_back(graph.add(it->second));
        }
        return classes;
    }

    Term with_values(const Term& pattern) const {
        if (is_variable(pattern)) {
            const auto it = bound_.find(pattern.op());
            if (it == bound_.end()) throw Refusal(rule_.name + " needs " + pattern.op().text());
            return it->second;
        }
        std::vector<Term> children;
        for (const Term& c : pattern.children()) children.push_back(with_values(c));
        return Term(pattern.op(), std::move(children));
    }

    // isl shows whether the right side is what the arrow of the rule says.
    void check(const Term& made) const {
        try {
            const SiteForm parts(made);  // it reads every axis
        } catch (const MalformedAxis& bad) {
            throw Refusal("with these values it makes what cannot be: " + bad.diagnostics()[0].message);
        }
        const Term before = nest_parts(nest_).schedule, after = nest_parts(made).schedule;
        const bool exact = rule_.arrow != Arrow::neural;
        if (exact && !isl_same_domain(form_.statement(), before, after)) throw Refusal("with these values it does not visit what was visited before");
        if (!exact && !isl_restricts(form_.statement(), before, after)) throw Refusal("with these values nothing is left out, or all");
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
            const Term& named = argument(rest[0].op());
            outer.push_back(form_.axis(first, named));
            if (iterators_of(outer.back()).empty()) throw Refusal("nothing is left of '" + to_string(named) + "'");
            if (std::find(outer.begin(), outer.end() - 1, outer.back()) != outer.end() - 1) throw Refusal("two loops both walk '" + to_string(named) + "'");
            bind(rest[0], outer.back());
        }
        if (!is_variable(rest)) throw Refusal("the rule's left side matches more than loops in a row, so a plan cannot apply it");
        const Term made = form_.list(first, outer);
        Term inner = made;
        for (std::size_t i = 0; i < outer.size(); ++i) inner = inner[1];
        bind(rest, inner);
        return made;
    }

    static inline const Symbol kept_variable{"?w"};

    const Rule& rule_;
    const Application& a_;
    Sides sides_;
    SiteForm form_;
    std::size_t part_ = 0;  // the part of the domain that expressions are about
    std::map<Symbol, Term> bound_;
    Term nest_;
};

// Which restore holds after a rule was applied inside another.
std::string one_restore(const std::string& before, const std::string& made) {
    if (!before.empty() && !made.empty() && before != made) throw Refusal("one nest is restored one way: '" + before + "' before, '" + made + "' here");
    return made.empty() ? before : made;
}

}  // namespace

PlanRules::PlanRules(std::vector<std::shared_ptr<const RuleBook>> books) : books_(std::move(books)) {
    if (!books_.empty()) networks_ = std::make_shared<NetRewriter>(*books_.front());
}

bool PlanRules::over_networks(const std::string& rule) const { return networks_ && networks_->find(rule) != nullptr; }

std::optional<Graph> PlanRules::apply(const Application& a, const Graph& graph, const std::string& site) const {
    ChosenValues values;
    for (const auto& [variable, value] : a.with) values[variable] = value;
    if (!a.restore.empty()) throw Refusal("restore is for rules over single nests");
    return apply_at_site(*networks_, a.rule, values, graph, site);
}

std::vector<std::string> PlanRules::names() const {
    std::vector<std::string> all;
    for (const auto& book : books_)
        for (const Rule* rule : book->rules()) all.push_back(rule->name);
    return all;
}

std::string PlanRules::source() const { return std::filesystem::path(books_.front()->files.front()->name).filename().string(); }

const Rule* PlanRules::find(const std::string& name) const {
    for (const auto& book : books_)
        if (const Rule* rule = book->find_rule(name)) return rule;
    return nullptr;
}

std::vector<std::string> PlanRules::arguments(const std::string& name, bool backwards) const {
    const Rule* rule = find(name);
    if (!rule) return {};
    const Sides sides = sides_of(*rule, backwards);
    std::vector<std::string> all;
    axes_of_loops(sides.left, all);
    if (backwards)
        for (const Symbol& variable : made_by(sides)) all.push_back(variable.text());
    else
        for (const ChoiceCall& c : rule->choices)
            if (!c.computed) all.push_back(c.variable.text());
    return all;
}

Term PlanRules::apply(const Application& a, const Term& nest) const {
    const Rule* rule = find(a.rule);
    require(rule != nullptr, "a rule that one of the books names");
    const SiteForm form(nest);
    const auto [left, right] = sides_of(*rule, a.backwards);
    const bool exact = rule->arrow != Arrow::neural, of_restored = left.is("restore", 2);
    if (a.backwards && !exact) throw Refusal("a neural rule has no way back");
    if (exact && !(left.is("nest", 2) && cuts(right))) {
        if (const auto it = a.with.find("?a"); it != a.with.end()) form.axis(a.part ? static_cast<std::size_t>(*a.part) : 0, it->second);  // it is there
        return nest;
    }
    if (exact && form.parts() > 1 && !a.part) throw Refusal(a.rule + " cuts one part: say which with \"part\"");
    const NestParts parts = nest_parts(nest);
    std::string restore = parts.restore;
    const auto applied_to = [&](const Term& schedule) {  // a rule over plain nests is applied inside a restore
        const Term inner = nest_from({parts.statement, schedule, of_restored ? parts.restore : ""});
        const NestParts made = nest_parts(Instance(*rule, a, inner).right_side());
        restore = one_restore(restore, made.restore);
        return made.schedule;
    };
    Term whole;
    if (cuts(left))
        whole = applied_to(form.schedule());
    else
        for (std::size_t p = form.parts(); p-- > 0;) {
            const Term list = !a.part || static_cast<std::size_t>(*a.part) == p ? applied_to(form.list(p)) : form.list(p);
            whole = whole ? Term("cat", {list, whole}) : list;
        }
    return nest_from({parts.statement, whole, restore});
}

const PlanRules& shipped_plan_rules() {
    static const PlanRules rules = plan_rules(shipped("rules/discover.rules"));
    return rules;
}

PlanRules plan_rules(const std::filesystem::path& file) {
    std::vector books{read_book(file)};
    for (const char* name : {"rules/tune-cpu.rules", "rules/tune-gpu.rules", "rules/fusion.rules", "rules/algorithms.rules"})
        books.push_back(read_book(shipped(name)));
    return PlanRules(std::move(books));
}

}  // namespace loopegg
