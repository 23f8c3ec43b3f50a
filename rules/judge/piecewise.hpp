// Functions of real numbers as pieces: polynomials over symbols, each where some polynomials are not negative. Functions that have no such form (exp, tanh, a
// variable ?f) are symbols of their own, equal where their arguments are.
#pragma once
#include <vector>

#include "base/term.hpp"
#include "rules/judge/polynomial.hpp"

namespace loopegg {

struct SignCondition {
    Polynomial p;
    bool strict = false;  // p > 0, else p >= 0
};
using SignConditions = std::vector<SignCondition>;  // all hold

struct Piece {
    SignConditions where;
    Polynomial value;
};
using Piecewise = std::vector<Piece>;  // every point is in one of them

// The pieces of a scalar term: symbols, numbers, + - * / max min, and the functions of src/graph/functions.hpp. None where there are too many pieces.
std::optional<Piecewise> piecewise(const Term& scalar);

// Whether no real values of the symbols meet all conditions. `false` may mean that it was not found out.
bool impossible(const SignConditions& conditions);

// Whether both are the same function wherever the conditions hold. `false` may mean that it was not found out.
bool same_function(const Piecewise& a, const Piecewise& b, const SignConditions& where);

// The number that a decimal text spells, exactly.
std::optional<mpq_class> decimal(const std::string& text);

}  // namespace loopegg
