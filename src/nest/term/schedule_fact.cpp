#include "nest/term/schedule_fact.hpp"

#include <algorithm>

#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

bool text_less(const Term& a, const Term& b) { return a == b ? false : to_string(a) < to_string(b); }

bool open_less(const OpenDigits& a, const OpenDigits& b) { return a.base == b.base ? a.stride < b.stride : to_string(a.base) < to_string(b.base); }

bool parts_less(const std::vector<Term>& a, const std::vector<Term>& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), text_less);
}

// The restriction that `a` has and `b` does not have, if there is one and only one.
const Term* only_difference(const std::vector<Term>& a, const std::vector<Term>& b) {
    const Term* only = nullptr;
    for (const Term& r : a) {
        if (std::find(b.begin(), b.end(), r) != b.end()) continue;
        if (only) return nullptr;
        only = &r;
    }
    return only;
}

// Two parts that differ in one span, and whose spans meet, are one part.
bool join_two(std::vector<std::vector<Term>>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i)
        for (std::size_t j = 0; j < parts.size(); ++j) {
            if (i == j || parts[i].size() != parts[j].size()) continue;
            const Term* left = only_difference(parts[i], parts[j]);
            const Term* right = left ? only_difference(parts[j], parts[i]) : nullptr;
            if (!right) continue;
            if (!left->is("span", 3) || !right->is("span", 3) || (*left)[0] != (*right)[0] || (*left)[2] != (*right)[1]) continue;
            AxisDigit whole = spanned(normal_axis((*left)[0]), *(*left)[1].integer(), *(*right)[2].integer());
            std::vector<Term> rest = parts[i];
            std::erase(rest, *left);
            if (whole.base.is("span", 3)) add_restriction(rest, to_term(whole));
            parts[i] = std::move(rest);
            parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(j));
            return true;
        }
    return false;
}

std::int64_t extent_of(const OpenDigits& o) { return (o.limit + o.stride - 1) / o.stride; }

}  // namespace

bool open_digit(std::vector<OpenDigits>& open, const AxisDigit& digit) {
    // A span of one value opens the digit that it fixes.
    if (digit.extent() == 1 && digit.base.is("span", 3) && digit.base_extent == 1) return open_digit(open, normal_axis(digit.base[0]));
    if (digit.extent() == 1) return true;
    OpenDigits joined{digit.base, digit.base_extent, digit.stride, digit.limit};
    for (std::size_t i = 0; i < open.size();) {
        OpenDigits& o = open[i];
        if (o.base != joined.base) {
            ++i;
            continue;
        }
        if (o.stride < joined.limit && joined.stride < o.limit) return false;
        if (o.limit != joined.stride && joined.limit != o.stride) {
            ++i;
            continue;
        }
        joined.stride = std::min(joined.stride, o.stride);
        joined.limit = std::max(joined.limit, o.limit);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
        i = 0;
    }
    const Term& base = joined.base;
    if (base.size() > 0 && joined.stride == 1 && joined.limit == joined.base_extent) {
        if (base.is("pair", 2)) return open_digit(open, normal_axis(base[0])) && open_digit(open, normal_axis(base[1]));
        if (base.is("span", 3)) return open_digit(open, normal_axis(base[0]));
        if (base.is("diag", 3)) {
            AxisDigit a = normal_axis(base[1]), b = normal_axis(base[2]);
            return open_digit(open, quotient(a, a.extent() / joined.base_extent)) && open_digit(open, quotient(b, b.extent() / joined.base_extent));
        }
        return open_digit(open, normal_axis(base));
    }
    open.insert(std::upper_bound(open.begin(), open.end(), joined, open_less), joined);
    return true;
}

void count_instances(ScheduleFact& fact) {
    double whole = 1;
    fact.output_tile = 1;
    fact.reduces = false;
    for (const OpenDigits& o : fact.open) {
        whole *= static_cast<double>(extent_of(o));
        bool parallel = true;
        for (const Term& leaf : iterators_of(o.base)) parallel = parallel && role_of(axis_name(leaf)->name) == AxisRole::parallel;
        if (parallel)
            fact.output_tile *= extent_of(o);
        else
            fact.reduces = true;
    }
    fact.instances = 0;
    for (const auto& part : fact.parts) {
        double kept = whole;
        for (const Term& r : part) {
            if (r.is("diag", 3))
                kept /= static_cast<double>(*r[0].integer());
            else
                kept *= static_cast<double>(*r[2].integer() - *r[1].integer()) / static_cast<double>(axis_extent(r[0]));
        }
        fact.instances += kept;
    }
}

Term key_of(const ScheduleFact& fact) {
    std::vector<Term> open, parts;
    for (const OpenDigits& o : fact.open) open.push_back(Term("open", {o.base, Term(o.stride), Term(o.limit)}));
    for (const auto& part : fact.parts) parts.push_back(Term("part", part));
    return Term("fact", {Term("open", std::move(open)), Term("parts", std::move(parts))});
}

void add_restriction(std::vector<Term>& part, const Term& r) {
    if (std::find(part.begin(), part.end(), r) == part.end()) part.insert(std::upper_bound(part.begin(), part.end(), r, text_less), r);
}

void join_parts(std::vector<std::vector<Term>>& parts) {
    while (join_two(parts)) {
    }
    std::sort(parts.begin(), parts.end(), parts_less);
}

}  // namespace loopegg
