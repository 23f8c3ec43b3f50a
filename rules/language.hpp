// A term language as the rule language sees it: a table of operators, guards, lists and functions, and the source of the facts that these look at.
//
// Two languages are in languages(): `free`, in which any operator may be written, and `nest`, whose loop nests are checked
// operator by operator. A rule file names its language in its first line. A file without such a line is in `free`.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/verdict.hpp"
#include "egraph/analysis.hpp"
#include "egraph/egraph.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

struct Rule;

// An operator and the kinds of term that it takes and makes. A kind is a word of the language's own ("axis", "schedule"). A variable that
// is where two different kinds are asked for is a mistake. An empty kind allows any term. `number` is the kind of whole numbers.
struct OperatorKind {
    std::string name;
    std::string kind;                   // what the operator makes
    std::vector<std::string> children;  // what the operator takes; empty: it is a leaf
};

// One argument of a guard, list or function, evaluated: a class for a variable, a number, or a plain word.
struct Argument {
    ClassId eclass = none;                     // when a variable was there; canonical
    std::optional<std::int64_t> number;        // of a constant, a computed expression, or a class that holds a number
    Symbol word{};                             // when a plain word was there: (reduces ?a max)
    std::optional<std::vector<Term>> terms{};  // of a function that gives terms
};

// What a guard, list or function gets. `facts` is what Language::make_facts made for this e-graph; the language casts it to its own type.
struct Question {
    const EGraph& graph;
    const Analysis* facts;
    std::span<const Argument> arguments;
};

// How many arguments there are, with a word for each that messages use: {"axis", "axis"}.
struct Signature {
    std::vector<std::string> parameters;
    bool more = false;  // the last one may be repeated
};

struct GuardKind {
    std::string name;
    Signature signature;
    std::string summary;                           // one line for `loopegg rules list`
    std::function<Verdict(const Question&)> test;  // unused for a capacity guard: Binding::capacity answers
    bool facts_only = true;                        // the guard looks at facts and arguments alone, never at the nodes of a class
    bool capacity = false;                         // the guard asks the capacity oracle; every neural rule must have such a guard
    bool bounds_search = false;                    // the guard keeps a search small, and the rule means the same without it: plans do not ask the guard
};

struct ListKind {
    std::string name;
    Signature signature;
    std::string summary;
    std::function<std::vector<Term>(const Question&)> values;
    bool facts_only = true;
};

// `value` gives none when there is no value (a division that leaves a remainder, a number that is not known). The rule then does not apply.
struct FunctionKind {
    std::string name;
    Signature signature;
    std::string summary;
    std::function<std::optional<std::int64_t>(const Question&)> value;
    bool facts_only = true;
    // Stands in place of `value` for functions that give terms: a list of axes, a schedule. Gives none where there is no value.
    std::function<std::optional<std::vector<Term>>(const Question&)> terms{};
    std::string kind = "number";  // the kind of term that the function gives, where that term may be in a side
};

// Why a rule is refused: the instance for which the rule is wrong, in words for a person.
struct Refutation {
    std::string message;   // "visits 64 instances on the left, 32 on the right"
    std::string instance;  // "(nest (linear 1 4 4) (at co:4 ...)) with ?k = 2"
};

struct Language {
    std::string name;
    bool open = false;                      // any operator with any number of children may be written
    std::vector<OperatorKind> operators{};  // a name may be here with several arities
    // The kind of a leaf that is no operator of the table and no number ("co:64" is an axis); none when there is no such leaf.
    std::function<std::optional<std::string>(std::string_view)> leaf_kind{};
    std::vector<GuardKind> guards{};  // besides the arithmetic guards that every language has
    std::vector<ListKind> lists{};
    std::vector<FunctionKind> functions{};
    std::function<std::shared_ptr<Analysis>()> make_facts{};  // attach the result to the e-graph and give it to Binding; it may be null
    // A term as a person may write it, made whole ("co" becomes "co:64"). Throws UserError.
    std::function<Term(const Term&)> prepare{};
    // Proves a rule or refutes it; `deep` tries many more instances. Loading a file asks this of every rule. Languages without a judge give terms no meaning.
    std::function<RuleVerdict(const Language&, const Rule&, bool deep)> judge{};
    // The guards that a verdict asks for besides those that the rule's author wrote: "(allow-reassociation)".
    std::function<std::vector<std::string>(const RuleVerdict&)> implied_guards{};

    const GuardKind* find_guard(std::string_view name) const;  // looks at the language's own guards, then at the arithmetic ones
    const ListKind* find_list(std::string_view name) const;
    const FunctionKind* find_function(std::string_view name) const;
    bool has_operator(std::string_view name) const;
};

// The languages, as one table. find_language() gives null where there is none of that name.
std::span<const Language* const> languages();
const Language* find_language(std::string_view name);
const Language& free_language();

// What every language has, over whole numbers. Functions: + - * / floor-div % min max gcd. Guards: = != < <= > >= divides number.
// Lists: range, proper-divisors, powers. `loopegg rules list` prints them with their meaning.
std::span<const GuardKind> common_guards();
std::span<const ListKind> common_lists();
std::span<const FunctionKind> common_functions();

}  // namespace loopegg
