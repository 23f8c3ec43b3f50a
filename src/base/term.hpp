// Terms: an operator applied to terms. Immutable and shared, so copies are cheap and equal parts may be one.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/symbol.hpp"

namespace loopegg {

class Term {
public:
    Term() = default;  // no term; test with `if (term)`
    explicit Term(Symbol op, std::vector<Term> children = {});
    explicit Term(std::string_view op, std::vector<Term> children = {}) : Term(Symbol(op), std::move(children)) {}
    explicit Term(std::int64_t value);  // the leaf that prints as this number

    explicit operator bool() const { return node_ != nullptr; }
    Symbol op() const;
    std::span<const Term> children() const;
    const Term& operator[](std::size_t i) const { return children()[i]; }
    std::size_t size() const { return children().size(); }
    bool is(std::string_view op, std::size_t arity) const;
    std::optional<std::int64_t> integer() const;  // the value of a leaf that is a whole number

    std::size_t hash() const;
    friend bool operator==(const Term& a, const Term& b);

private:
    struct Node;
    std::shared_ptr<const Node> node_;
};

// "(at co (at ci done))". Never a newline.
std::string to_string(const Term& term);

// The term with `by` wherever `part` was.
Term with_replaced(const Term& whole, const Term& part, const Term& by);

// The whole number that an operator's name spells, if it spells one.
std::optional<std::int64_t> integer_of(Symbol op);

}  // namespace loopegg

template <>
struct std::hash<loopegg::Term> {
    std::size_t operator()(const loopegg::Term& t) const noexcept { return t.hash(); }
};
