#include "nest/domain/instance_sets.hpp"

#include <algorithm>
#include <optional>

#include "nest/judge/isl_judge.hpp"
#include "nest/term/axis.hpp"

namespace loopegg {
namespace {

constexpr double max_points = 1 << 20;

std::vector<Term> leaves_of(std::initializer_list<const std::vector<Restrictions>*> unions, std::initializer_list<Term> axes = {}) {
    std::vector<Term> leaves;
    auto add = [&](const Term& t) {
        for (const Term& leaf : iterators_of(t))
            if (std::find(leaves.begin(), leaves.end(), leaf) == leaves.end()) leaves.push_back(leaf);
    };
    for (const auto* u : unions)
        for (const Restrictions& part : *u)
            for (const Term& r : part) add(r);
    for (const Term& a : axes) add(a);
    return leaves;
}

double points(const std::vector<Term>& leaves) {
    double n = 1;
    for (const Term& leaf : leaves) n *= static_cast<double>(axis_extent(leaf));
    return n;
}

// Calls f(value_of) for every combination of the leaves' values, while f returns true.
template <class F>
bool for_all(const std::vector<Term>& leaves, const F& f) {
    std::vector<std::int64_t> values(leaves.size(), 0);
    auto value_of = [&](const Term& leaf) -> std::optional<std::int64_t> {
        return values[static_cast<std::size_t>(std::find(leaves.begin(), leaves.end(), leaf) - leaves.begin())];
    };
    while (true) {
        if (!f(value_of)) return false;
        std::size_t i = leaves.size();
        while (i > 0 && ++values[i - 1] == axis_extent(leaves[i - 1])) values[--i] = 0;
        if (i == 0) return true;
    }
}

template <class V>
bool holds(const Restrictions& part, const V& value_of) {
    return std::all_of(part.begin(), part.end(), [&](const Term& r) { return axis_value(r, value_of).has_value(); });
}

template <class V>
bool holds_any(const std::vector<Restrictions>& parts, const V& value_of) {
    return std::any_of(parts.begin(), parts.end(), [&](const Restrictions& p) { return holds(p, value_of); });
}

// Whether both sides have a span of the same axis and these spans do not overlap.
bool plainly_disjoint(const Restrictions& a, const Restrictions& b) {
    for (const Term& x : a)
        for (const Term& y : b)
            if (x.is("span", 3) && y.is("span", 3) && x[0] == y[0] && (*x[2].integer() <= *y[1].integer() || *y[2].integer() <= *x[1].integer())) return true;
    return false;
}

}  // namespace

bool parts_disjoint(const std::vector<Restrictions>& a, const std::vector<Restrictions>& b) {
    bool plain = std::all_of(a.begin(), a.end(), [&](const Restrictions& x) {
        return std::all_of(b.begin(), b.end(), [&](const Restrictions& y) { return plainly_disjoint(x, y); });
    });
    if (plain) return true;
    auto leaves = leaves_of({&a, &b});
    if (points(leaves) > max_points) return isl_disjoint(leaves, a, b);
    return for_all(leaves, [&](auto& value_of) { return !(holds_any(a, value_of) && holds_any(b, value_of)); });
}

bool same_parts(const std::vector<Restrictions>& a, const std::vector<Restrictions>& b) {
    if (a == b) return true;
    auto leaves = leaves_of({&a, &b});
    if (points(leaves) > max_points) return isl_equal(leaves, a, b);
    return for_all(leaves, [&](auto& value_of) { return holds_any(a, value_of) == holds_any(b, value_of); });
}

bool same_axis(const Term& a, const Restrictions& where_a, const Term& b, const Restrictions& where_b) {
    if (axis_extent(a) != axis_extent(b)) return false;
    std::vector<Restrictions> parts_a{where_a}, parts_b{where_b};
    auto leaves = leaves_of({&parts_a, &parts_b}, {a, b});
    if (points(leaves) > max_points) return false;
    return for_all(leaves, [&](auto& value_of) {
        bool here = holds(where_a, value_of), there = holds(where_b, value_of);
        return here == there && (!here || axis_value(a, value_of) == axis_value(b, value_of));
    });
}

}  // namespace loopegg
