// Rules as they were read and checked. They are plain data, bound to no e-graph. bind_rule() makes them ready to run.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/source.hpp"
#include "egraph/rewrite.hpp"
#include "rules/language.hpp"
#include "rules/measure.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

enum class Arrow {
    forward,  // =>   the left side becomes equal to the right
    both,     // <=>  the same, and a rewrite from right to left too
    neural,   // ~>   the right side is a variant: not equal, joined by an edge
};

// An expression over what a match has bound: 4, ?k, reduction, (/ (extent ?a) ?g).
struct Expression {
    enum class Form { number, variable, word, call };
    Form form = Form::number;
    std::int64_t number = 0;
    Symbol name{};                           // of a variable or a word
    const FunctionKind* function = nullptr;  // of a call
    std::vector<Expression> arguments{};
    Position where{};
    std::string text{};  // as written, in the canonical form of terms
};

struct GuardCall {
    const GuardKind* guard;
    std::vector<Expression> arguments;
    Position where;
    std::string text;                           // "(permutable ?a ?b)"
    std::optional<MeasureCondition> measure{};  // of (fisher >= 0.9); (capacity) represents the conditions of the phase
};

// :for ?k (divisors ?a), :for ?g (2 4 8 16), or a computed part of a side (then `computed` is set, and the variable is '?' and the text of that part).
struct ChoiceCall {
    Symbol variable;
    const ListKind* list = nullptr;
    std::vector<Expression> arguments{};  // of the list
    std::vector<Term> values{};           // of a list that is written out
    std::optional<Expression> computed{};
    Position where{};
    std::string text{};
};

struct Rule {
    std::string name;
    std::string set;  // the ruleset that the rule is in
    Arrow arrow = Arrow::forward;
    std::vector<Rooted> left, right;    // computed parts replaced by their variables
    std::vector<ChoiceCall> choices{};  // in an order in which each needs only what is bound before it
    std::vector<GuardCall> guards{};
    Position where{};
    std::string text{};                    // the whole rule in one line, for lists and reports
    std::optional<RuleVerdict> verdict{};  // none: the rule was not judged, or its language gives terms no meaning
};

struct RuleSet {
    std::string name;
    std::vector<std::string> tags;  // classes of architecture and kinds of machine (cpu, gpu) that the set is meant for
    std::vector<Rule> rules;
    Position where;
};

// What a step of the rule is asked by itself: the conditions that the rule names, and those of the phase where it says (capacity).
std::vector<MeasureCondition> conditions_of_step(const Rule& rule, std::span<const MeasureCondition> phase);

// One saturation: which sets of rules it uses, and its limits.
struct Phase {
    std::string name;
    std::vector<std::string> sets;
    std::optional<std::int64_t> iterations, nodes;
    std::optional<double> seconds;
    std::vector<MeasureCondition> when{};  // asked about whole networks, and about each step whose rule says (capacity)
    std::string scheduler{};               // "simple", "backoff" or empty
    Position where{};
};

// Everything that a rule file and its includes say.
struct RuleBook {
    const Language* language = nullptr;
    std::vector<RuleSet> sets;  // in the order of the files; rules outside any set are in the set "main"
    std::vector<Phase> phases;
    std::vector<SourcePtr> files;  // the file itself first

    const RuleSet* find_set(std::string_view name) const;
    const Phase* find_phase(std::string_view name) const;
    const Rule* find_rule(std::string_view name) const;
    std::size_t rule_count() const;
    std::vector<const Rule*> rules() const;                       // of every set
    std::vector<const Rule*> rules_of(const Phase& phase) const;  // of the sets that a phase names
};

// One application that waits for the capacity oracle: the class that the rule matched, and the class of what it made.
struct CapacityProposal {
    Symbol rule;
    ClassId from, to;
    std::optional<MeasureCondition> measure{};  // none: (capacity)
};

// What rules need from the run that they are used in.
struct Binding {
    std::shared_ptr<Analysis> facts{};  // Language::make_facts, attached to the e-graph; may be empty
    // Answers (capacity) and conditions on measures with one verdict for each proposal of an iteration. Where the function is empty, everything is allowed,
    // and the evidence says so.
    std::function<std::vector<Verdict>(const EGraph&, std::span<const CapacityProposal>)> capacity{};
};

// The engine's form of a rule: one rewrite, or two for '<=>'.
std::vector<Rewrite> bind_rule(const Rule& rule, const Binding& binding);
std::vector<Rewrite> bind_rules(std::span<const Rule* const> rules, const Binding& binding);

}  // namespace loopegg
