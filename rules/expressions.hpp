// Reads the small expressions of a rule: arguments, guards, lists of choices. The reader says what is wrong and continues.
#pragma once
#include <optional>

#include "base/sexpr.hpp"
#include "rules/complaints.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// By its look, "?a" is a variable, "12" a number, and anything else a word.
bool looks_like_variable(const SExpr& e);
// Returns whether the name may be used. Complains about "?", "?result" and "?root".
bool check_variable_name(const SExpr& e, Complaints& complaints);

class ExpressionReader {
public:
    ExpressionReader(const Language& language, Complaints& complaints) : language_(language), complaints_(complaints) {}

    std::optional<Expression> expression(const SExpr& e, bool words_allowed = false, int depth = 0);
    std::optional<GuardCall> guard(const SExpr& e);
    // The list of ':for variable list'.
    std::optional<ChoiceCall> choice(const SExpr& variable, const SExpr& list);
    // A computed part of a side; the name of its variable is made from its text.
    std::optional<ChoiceCall> computed(const SExpr& e);

private:
    std::optional<ChoiceCall> written_out(ChoiceCall choice, const SExpr& list);
    std::optional<std::vector<Expression>> arguments(const SExpr& call, const char* what, const Signature& signature, bool words_allowed, int depth = 0);

    const Language& language_;
    Complaints& complaints_;
};

// The variables that an expression uses, in order, each once.
void collect_variables(const Expression& e, std::vector<Symbol>& into);
std::vector<Symbol> variables_of(const std::vector<Expression>& all);

// "2 arguments (axis, axis)", for messages.
std::string describe(const Signature& signature);

}  // namespace loopegg
