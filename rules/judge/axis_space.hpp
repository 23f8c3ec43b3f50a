// The axes of a rule as digits: every variable for an axis is a number of one or more digits, and what the rule makes of it is a list of such digits.
//
// (quo ?a ?k) and (rem ?a ?k) are the two digits of ?a in a mixed radix, whatever ?k is. Digits in order compare as the axis does, so no product of two
// sizes is needed to say which iteration comes first. An axis that has no such digits, such as (quo ?a 2) next to (quo ?a 3), is a number whose quotients
// are taken, where the factors are constants.
#pragma once
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rules/judge/sizes.hpp"

namespace loopegg {

// An axis, a size or a schedule has no form that the judge knows.
struct NoForm : std::runtime_error {
    using std::runtime_error::runtime_error;
    std::set<std::string> symbols{};  // sizes that would have to be known
};

// In texts, '@' represents the instance: "@v0" becomes "xv0" or "yv0".
struct AxisPiece {
    std::string text;
    Polynomial radix;
    std::string atom{};  // where the piece is one digit of a variable: whose, and which
    std::size_t digit = 0;
};

struct AxisValue {
    std::vector<AxisPiece> pieces;  // outermost first; none: 0
    Polynomial extent = 1;
    bool is_number = true;              // the pieces are its digits; else they say no more than which value comes first
    std::vector<std::string> walked{};  // the digits that a loop along the axis goes through: those of both sides of a diagonal
};

class AxisSpace {
public:
    explicit AxisSpace(Sizes& sizes) : sizes_(sizes) {}

    // The axis of a term. Adds where it is defined to `conditions`, and what its numbers must meet to `needs`. Throws NoForm, or Split.
    AxisValue value(const Term& axis, SizeConditions& conditions, std::vector<SizeFact>& needs);

    // Texts of the values of two axes, which are equal where the values are.
    std::pair<std::vector<std::string>, std::vector<std::string>> values(const Term& a, const Term& b);

    // A digit of a variable must be made two before the terms can be read. The reader calls split() and begins again.
    struct Split {
        std::string atom;
        std::size_t digit;
        Polynomial by;
    };
    void split(const Split& s);

    const std::set<std::string>& atoms() const { return used_; }  // the variables that were read so far
    std::vector<std::string> variables(const std::string& atom);  // "@v0"
    SizeConditions conditions(const std::string& atom);           // of its digits
    static std::string at(std::string text, char instance);       // puts the instance in

private:
    struct Digit {
        std::string variable;
        Polynomial radix;
    };
    struct Atom {
        std::vector<Digit> digits;
        std::vector<Polynomial> end;  // of an axis that ends inside a block: the first digits of its extent; empty where blocks are whole
    };
    Atom& atom(const std::string& name);
    Polynomial split_end(const Polynomial& end, const Polynomial& by);
    bool can_split(const AxisPiece& piece, const Polynomial& by) const;
    AxisValue leaf(const Term& axis);
    AxisValue quotient(const AxisValue& x, const Polynomial& by, bool remainder);
    AxisValue floored(const AxisValue& x, const Polynomial& by, bool remainder);
    AxisValue pair(const AxisValue& outer, const AxisValue& inner);
    AxisValue span(const AxisValue& x, const Polynomial& low, const Polynomial& high, SizeConditions& conditions);
    AxisValue diagonal(const Polynomial& blocks, const AxisValue& a, const AxisValue& b, SizeConditions& conditions);
    std::optional<std::string> number(std::span<const AxisPiece> pieces) const;
    std::string compared(const AxisValue& x, const Polynomial& bound, bool reached);

    Sizes& sizes_;
    std::map<std::string, Atom> atoms_;
    std::set<std::string> used_;
    int variables_ = 0;
};

}  // namespace loopegg
