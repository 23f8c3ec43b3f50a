// Polynomials with rational coefficients over named symbols: sizes, and values of single elements, in one normal form.
#pragma once
#include <gmpxx.h>

#include <map>
#include <optional>
#include <set>
#include <string>

namespace loopegg {

// Symbols with their powers; empty for the constant term.
using Monomial = std::map<std::string, int>;

class Polynomial {
public:
    Polynomial() = default;
    Polynomial(const mpq_class& constant);
    Polynomial(long constant) : Polynomial(mpq_class(constant)) {}
    static Polynomial of(const std::string& symbol);
    static Polynomial of(const Monomial& monomial);

    const std::map<Monomial, mpq_class>& terms() const { return terms_; }  // no coefficient is 0
    bool is_zero() const { return terms_.empty(); }
    bool is_linear() const;
    bool is_whole() const;                         // whether all coefficients are whole numbers
    std::optional<mpq_class> constant() const;     // its value, where it has no symbols
    std::optional<std::string> as_symbol() const;  // its name, where it is one symbol and nothing else
    std::set<std::string> symbols() const;

    Polynomial substituted(const std::string& symbol, const Polynomial& value) const;
    // None where the division leaves a remainder. Divisors of several terms divide their own multiples alone.
    std::optional<Polynomial> divided_by(const Polynomial& divisor) const;

    Polynomial& operator+=(const Polynomial& other);
    friend Polynomial operator+(Polynomial a, const Polynomial& b) { return a += b; }
    friend Polynomial operator-(const Polynomial& a, const Polynomial& b);
    friend Polynomial operator*(const Polynomial& a, const Polynomial& b);
    friend bool operator==(const Polynomial& a, const Polynomial& b) { return a.terms_ == b.terms_; }

private:
    void add(const Monomial& monomial, const mpq_class& coefficient);

    std::map<Monomial, mpq_class> terms_;
};

std::string to_string(const Polynomial& p);

}  // namespace loopegg
