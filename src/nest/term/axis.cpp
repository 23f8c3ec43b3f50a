#include "nest/term/axis.hpp"

#include <algorithm>

#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

[[noreturn]] void malformed(const std::string& message) { throw MalformedAxis(message); }

AxisDigit as_base(const Term& base, std::int64_t extent) { return {base, extent, 1, extent}; }

// A digit that cannot be split evenly further becomes a base of its own.
AxisDigit opaque(const AxisDigit& axis) { return as_base(to_term(axis), axis.extent()); }

bool is_whole_pair(const AxisDigit& axis) { return axis.whole() && axis.base.is("pair", 2); }

std::int64_t number(const Term& term, std::size_t child, std::int64_t least) {
    auto value = term[child].integer();
    if (!value || *value < least)
        malformed("'" + to_string(term[child]) + "' in " + to_string(term) + " must be a number of at least " + std::to_string(least));
    return *value;
}

}  // namespace

AxisDigit quotient(const AxisDigit& axis, std::int64_t k) {
    if (k < 1) malformed("an axis is split by at least 1");
    if (k == 1) return axis;
    if (is_whole_pair(axis)) {
        AxisDigit outer = normal_axis(axis.base[0]), inner = normal_axis(axis.base[1]);
        if (k % inner.extent() == 0) return quotient(outer, k / inner.extent());
        if (inner.extent() % k == 0) return paired(outer, quotient(inner, k));
    }
    std::int64_t radix = axis.extent();
    if (k >= radix) return as_base(Term(std::int64_t{0}), 1);
    if (axis.top()) return {axis.base, axis.base_extent, axis.stride * k, axis.limit};
    if (radix % k == 0) return {axis.base, axis.base_extent, axis.stride * k, axis.limit};
    return quotient(opaque(axis), k);
}

AxisDigit remainder(const AxisDigit& axis, std::int64_t k) {
    if (k < 1) malformed("an axis is split by at least 1");
    if (k == 1) return as_base(Term(std::int64_t{0}), 1);
    std::int64_t radix = axis.extent();
    if (k >= radix) return axis;
    if (is_whole_pair(axis)) {
        AxisDigit outer = normal_axis(axis.base[0]), inner = normal_axis(axis.base[1]);
        if (inner.extent() % k == 0) return remainder(inner, k);
        if (k % inner.extent() == 0) return paired(remainder(outer, k / inner.extent()), inner);
    }
    if (axis.top() || radix % k == 0) return {axis.base, axis.base_extent, axis.stride, axis.stride * k};
    return remainder(opaque(axis), k);
}

AxisDigit paired(const AxisDigit& outer, const AxisDigit& inner) {
    if (outer.extent() == 1) return inner;
    if (inner.extent() == 1) return outer;
    // The pair of two neighbouring digits of one base is one digit.
    if (outer.base == inner.base && outer.stride == inner.limit) return {outer.base, outer.base_extent, inner.stride, outer.limit};
    return as_base(Term("pair", {to_term(outer), to_term(inner)}), outer.extent() * inner.extent());
}

AxisDigit spanned(const AxisDigit& axis, std::int64_t lo, std::int64_t hi) {
    if (lo < 0 || hi <= lo || hi > axis.extent())
        malformed("a span from " + std::to_string(lo) + " to " + std::to_string(hi) + " of an axis with extent " + std::to_string(axis.extent()));
    if (lo == 0 && hi == axis.extent()) return axis;
    if (axis.whole() && axis.base.is("span", 3)) {
        std::int64_t shift = *axis.base[1].integer();
        return spanned(normal_axis(axis.base[0]), lo + shift, hi + shift);
    }
    return as_base(Term("span", {to_term(axis), Term(lo), Term(hi)}), hi - lo);
}

AxisDigit diagonal(std::int64_t blocks, const AxisDigit& a, const AxisDigit& b) {
    if (blocks < 1 || a.extent() % blocks != 0 || b.extent() % blocks != 0)
        malformed(std::to_string(blocks) + " diagonal blocks do not divide extents " + std::to_string(a.extent()) + " and " + std::to_string(b.extent()));
    if (blocks == 1) return as_base(Term(std::int64_t{0}), 1);
    return as_base(Term("diag", {Term(blocks), to_term(a), to_term(b)}), blocks);
}

AxisDigit normal_axis(const Term& axis) {
    if (axis.size() == 0) {
        if (axis.integer() && *axis.integer() == 0) return as_base(axis, 1);
        auto name = axis_name(axis);
        if (!name || name->extent == 0) malformed("'" + to_string(axis) + "' is no axis with an extent (such as co:64)");
        return as_base(axis, name->extent);
    }
    if (axis.is("quo", 2)) return quotient(normal_axis(axis[0]), number(axis, 1, 1));
    if (axis.is("rem", 2)) return remainder(normal_axis(axis[0]), number(axis, 1, 1));
    if (axis.is("pair", 2)) return paired(normal_axis(axis[0]), normal_axis(axis[1]));
    if (axis.is("span", 3)) return spanned(normal_axis(axis[0]), number(axis, 1, 0), number(axis, 2, 1));
    if (axis.is("diag", 3)) return diagonal(number(axis, 0, 1), normal_axis(axis[1]), normal_axis(axis[2]));
    malformed("'" + to_string(axis) + "' is no axis: expected an iterator, quo, rem, pair, span or diag");
}

Term to_term(const AxisDigit& axis) {
    if (axis.whole()) return axis.base;
    if (axis.top()) return Term("quo", {axis.base, Term(axis.stride)});
    if (axis.stride == 1) return Term("rem", {axis.base, Term(axis.limit)});
    return Term("rem", {Term("quo", {axis.base, Term(axis.stride)}), Term(axis.limit / axis.stride)});
}

std::int64_t axis_extent(const Term& axis) { return normal_axis(axis).extent(); }

std::vector<Term> iterators_of(const Term& axis) {
    if (axis.size() == 0) return axis.integer() ? std::vector<Term>{} : std::vector<Term>{axis};
    std::vector<Term> all;
    for (const Term& child : axis.children())
        for (const Term& leaf : iterators_of(child))
            if (std::find(all.begin(), all.end(), leaf) == all.end()) all.push_back(leaf);
    return all;
}

}  // namespace loopegg
