// Reads the sides of a rule, checks them against the operators of a language, and gathers what the rule's variables represent.
#pragma once
#include <map>

#include "rules/expressions.hpp"

namespace loopegg {

// The kind of term that a variable represents, and where the variable was seen first.
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
        std::string kind;  // of the term, where known
    };
    Read read(const SExpr& e, Side side, const std::string& wanted = {});

    // The variables of each side that were read so far. The position is the first on that side.
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
