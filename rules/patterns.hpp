// Reads the sides of a rule against the operators of a language, and gathers what its variables stand for.
#pragma once
#include <map>

#include "rules/expressions.hpp"

namespace loopegg {

// What a variable was seen to stand for, and where first.
struct VariableUse {
    std::string kind;
    Position where;
};

class PatternReader {
public:
    PatternReader(const Language& language, Complaints& complaints) : language_(language), complaints_(complaints), expressions_(language, complaints) {}

    enum class Side { left, right };
    struct Read {
        Term term;         // empty when there was a mistake
        std::string kind;  // what it makes, where known
    };
    Read read(const SExpr& e, Side side, const std::string& wanted = {});

    // Of both sides so far, in the order of the text; the position is the first on that side.
    const std::map<Symbol, Position>& left_variables() const { return left_; }
    const std::map<Symbol, Position>& right_variables() const { return right_; }
    std::vector<ChoiceCall>& computed() { return computed_; }  // of the right side, each once

private:
    Read variable(const SExpr& e, Side side, const std::string& wanted);
    Read leaf(const SExpr& e, const std::string& wanted);
    Read list(const SExpr& e, Side side, const std::string& wanted);
    Read compute(const SExpr& e, const SExpr& value, Side side);
    const OperatorKind* choose(const SExpr& e);
    bool holds_lists(const SExpr& e) const;
    std::vector<std::string> known_names(Side side) const;
    bool fits(const SExpr& e, const std::string& kind, const std::string& wanted);

    const Language& language_;
    Complaints& complaints_;
    ExpressionReader expressions_;
    std::map<Symbol, VariableUse> kinds_;
    std::map<Symbol, Position> left_, right_;
    std::vector<ChoiceCall> computed_;
};

}  // namespace loopegg
