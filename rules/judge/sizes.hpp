// What the conditions of a rule say of its numbers and extents: conditions over whole parameters, for all sizes at once.
//
// Every number of the rule is a polynomial over parameters: (extent ?a) is one parameter, until a condition says that ?k divides it. Then it is ?k times
// another one. A condition that has no such form is left out, so that the sizes that remain are more, never fewer.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nest/judge/isl_questions.hpp"
#include "rules/judge/polynomial.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct SizeFact {
    enum class Kind { zero, not_zero, at_least_zero, multiple };  // multiple: of `of`
    Kind kind = Kind::zero;
    Polynomial of_size;
    std::int64_t of = 0;
};

class Sizes {
public:
    // `fixed` are choices of numbers that this case is about: "?k" is 4.
    Sizes(const Rule& rule, const std::map<std::string, std::int64_t>& fixed);

    Polynomial extent(const std::string& axis);  // of a variable or of an iterator
    Polynomial value(const Term& number);        // a number, a variable or a computed part of the rule's sides
    Polynomial value(const Expression& number);
    Polynomial resolved(Polynomial p) const;  // with all that is known of its symbols put in
    Polynomial fresh(const std::string& meaning, std::int64_t least);
    Polynomial smallest(const std::vector<Polynomial>& all, bool largest);

    void assume(const SizeFact& fact);
    void assume_one_of(std::vector<std::vector<SizeFact>> alternatives) { facts_.push_back(std::move(alternatives)); }
    void assume_at_least(const Polynomial& p, const Polynomial& q);  // p >= q
    void define(const std::string& symbol, const Polynomial& value) { known_[symbol] = value; }
    bool is_free(const std::string& symbol) const { return !known_.contains(symbol); }

    // In isl's notation. A product of parameters is a parameter of its own, of which some bounds are known.
    std::string text(const Polynomial& p);
    std::string text(const SizeFact& fact);
    SizeConditions conditions();
    std::vector<std::string> parameters() const;  // all that texts have named so far

    std::optional<std::int64_t> value_at(const Polynomial& p, const SizePoint& point) const;
    // What a parameter's value means: "(extent ?a) = 129".
    std::string described(const SizePoint& point) const;

private:
    using Alternatives = std::vector<std::vector<SizeFact>>;

    void note_bound(const Polynomial& at_least_zero);
    void unify_equal_numbers();
    void note_divisors();
    void note_divisors_in(const Expression& e);
    void note_divisor(const Polynomial& whole, const Polynomial& part, bool proper);
    void note_lists();
    void note_list(const ChoiceCall& choice);
    void note_guards();
    void compare(const std::string& relation, const Polynomial& a, const Polynomial& b);
    Polynomial call(const Expression& e);
    Polynomial quotient_of(const Expression& e, const Polynomial& a, const Polynomial& b);
    Polynomial floored(const Expression& e, const Polynomial& a, const Polynomial& b, bool remainder);
    std::int64_t least(const std::string& symbol) const;
    bool is_positive(const Monomial& m) const;
    std::string identifier(const Monomial& m);
    void bound_product(const Monomial& m, SizeConditions& into);

    const Rule& rule_;
    std::map<std::string, Polynomial> known_;    // what symbols represent
    std::map<std::string, std::int64_t> least_;  // lower bounds of symbols
    std::map<std::string, std::string> made_;    // the symbol of an expression that has no other form, by its text
    std::vector<Alternatives> facts_;
    std::map<Monomial, std::string> identifiers_;
    std::vector<Monomial> named_;  // in the order of their identifiers
    std::set<std::string> busy_;   // computed parts that are being worked out
};

}  // namespace loopegg
