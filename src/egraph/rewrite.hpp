// A rule as plain data: what to find, what to add to its class, and what must hold. The rule language makes these; tests write them by hand.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.hpp"
#include "base/term.hpp"
#include "base/verdict.hpp"
#include "egraph/ids.hpp"

namespace loopegg {

class EGraph;

// A leaf whose name begins with '?' is a variable; everything else is an operator or a constant.
bool is_variable(Symbol symbol);
std::vector<Symbol> variables_of(const Term& pattern);  // in order of first appearance, each once

enum class Relation {
    exact,   // both sides are one class
    neural,  // the right side is a class of its own, and an edge leads to it
};

// A condition over the classes that some variables are bound to. The search asks a guard as soon as its variables are bound. A guard
// that needs a choice's variable, or ?result (the class of the right side), is asked when the rule is applied. A guard may look only at the
// facts and the nodes of the classes that it is given, because the incremental search asks a guard again only when these change.
struct Guard {
    std::string text;  // as written: "(permutable ?a ?b)"
    std::vector<Symbol> needs;
    std::function<Verdict(const EGraph&, std::span<const ClassId>)> test;  // the classes in the order of `needs`
    // Instead of `test`, for guards that are costly to ask: is asked about every application of an iteration at once, and gives one verdict for each.
    std::function<std::vector<Verdict>(const EGraph&, std::span<const std::vector<ClassId>>)> batch{};
    bool facts_only = false;  // the guard looks at facts alone, never at nodes, so it is asked again less often
};

// A variable that takes each of a list of values in turn (:for), or a part of the right side that is computed. Such a part has a list of
// one value, or an empty list to refuse the application, and the name of its variable is '?' and the expression as written.
struct Choice {
    Symbol variable;
    std::string text;           // as written: "(divisors ?a)"
    std::vector<Symbol> needs;  // variables of the left side and of earlier choices
    std::function<std::vector<Term>(const EGraph&, std::span<const ClassId>)> values;
    bool facts_only = false;  // as for a guard
};

// A pattern whose root class has a name, for rules of several patterns. With one pattern, root may be empty.
struct Rooted {
    Symbol root;
    Term term;
};

struct Rewrite {
    std::string name;
    std::vector<Rooted> left;   // all must match, sharing variables
    std::vector<Rooted> right;  // each is made equal to (or a variant of) the class of the same root on the left
    Relation relation = Relation::exact;
    std::vector<Guard> guards{};
    std::vector<Choice> choices{};
    bool backwards = false;  // the second half of a '<=>': from the right side as written to the left
    Position where{};
};

// A rule with one pattern on each side and no conditions: rewrite("add-commutes", "(+ ?a ?b)", "(+ ?b ?a)").
Rewrite rewrite(std::string name, std::string_view left, std::string_view right);
// The same rule from right to left. Every variable of the left side must appear on the right.
Rewrite backwards(const Rewrite& rule);

inline const Symbol result_variable{"?result"};

}  // namespace loopegg
