// AXIS terms in normal form: every axis is one digit of a base, in the mixed radix that splits make.
//
// A base is an iterator, or an axis that is no digit of anything simpler (a pair, a span, a diagonal, a split that does not divide an
// inner digit). A digit of it is (base / stride) % (limit / stride); the topmost digit has limit = extent of the base, and needs no
// remainder. Two axes with one normal form have the same values, so equal axes may be one e-class.
#pragma once
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "base/term.hpp"

namespace loopegg {

struct AxisDigit {
    Term base;  // in normal form too
    std::int64_t base_extent = 1;
    std::int64_t stride = 1, limit = 1;

    std::int64_t extent() const { return (limit + stride - 1) / stride; }
    bool top() const { return limit == base_extent; }
    bool whole() const { return stride == 1 && top(); }
    friend bool operator==(const AxisDigit& a, const AxisDigit& b) { return a.stride == b.stride && a.limit == b.limit && a.base == b.base; }
};

// An impossible axis: not an axis term, a diagonal that does not divide, a span outside its axis.
class MalformedAxis : public UserError {
public:
    using UserError::UserError;
};

// The normal form of an axis, from its term or from its parts. Throws MalformedAxis.
AxisDigit normal_axis(const Term& axis);
AxisDigit quotient(const AxisDigit& axis, std::int64_t k);
AxisDigit remainder(const AxisDigit& axis, std::int64_t k);
AxisDigit paired(const AxisDigit& outer, const AxisDigit& inner);
AxisDigit spanned(const AxisDigit& axis, std::int64_t lo, std::int64_t hi);
AxisDigit diagonal(std::int64_t blocks, const AxisDigit& a, const AxisDigit& b);

Term to_term(const AxisDigit& axis);
std::int64_t axis_extent(const Term& axis);

// The iterators that an axis depends on, each once, in the order they appear.
std::vector<Term> iterators_of(const Term& axis);

// The value of an axis at an instance; none where the axis is undefined (outside a span or a diagonal).
// `value_of` gives the value of an iterator leaf.
template <class ValueOf>
std::optional<std::int64_t> axis_value(const Term& axis, const ValueOf& value_of) {
    if (axis.size() == 0) return value_of(axis);
    const std::string& op = axis.op().text();
    if (op == "diag") {
        std::int64_t g = *axis[0].integer(), ea = axis_extent(axis[1]) / g, eb = axis_extent(axis[2]) / g;
        auto a = axis_value(axis[1], value_of), b = axis_value(axis[2], value_of);
        return a && b && *a / ea == *b / eb ? std::optional(*a / ea) : std::nullopt;
    }
    auto a = axis_value(axis[0], value_of);
    if (!a) return {};
    if (op == "quo") return *a / *axis[1].integer();
    if (op == "rem") return *a % *axis[1].integer();
    if (op == "span") return *axis[1].integer() <= *a && *a < *axis[2].integer() ? std::optional(*a - *axis[1].integer()) : std::nullopt;
    auto b = axis_value(axis[1], value_of);
    return b ? std::optional(*a * axis_extent(axis[1]) + *b) : std::nullopt;
}

}  // namespace loopegg
