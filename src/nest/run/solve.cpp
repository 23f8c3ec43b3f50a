#include "nest/run/solve.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"

namespace loopegg {

Index Linear::index() const {
    Index sum(0);
    for (const Part& p : parts) sum = sum + p.atom.value * p.coefficient;
    return sum + Index(offset);
}

std::int64_t Linear::largest() const {
    std::int64_t sum = offset;
    for (const Part& p : parts) sum += p.coefficient * (p.atom.extent - 1);
    return sum;
}

void Linear::add(const Linear& other, std::int64_t times) {
    if (times == 0) return;
    offset += other.offset * times;
    for (const Part& p : other.parts) {
        auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& q) { return q.atom == p.atom; });
        if (same != parts.end())
            same->coefficient += p.coefficient * times;
        else
            parts.push_back({p.coefficient * times, p.atom});
    }
}

bool Linear::uses(const IndexAtom& atom) const {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& p) { return p.atom == atom; });
}

namespace {

Linear of_atom(IndexAtom atom) { return {0, {{1, std::move(atom)}}}; }

// value / k and value % k. Both are sums where each part of the value goes wholly to the quotient or to the remainder, and atoms otherwise.
std::pair<Linear, Linear> divided(const Linear& value, std::int64_t k, std::int64_t quotient_extent) {
    Linear high, low;
    low.offset = value.offset;
    for (const Linear::Part& p : value.parts) {
        if (p.coefficient % k == 0)
            high.parts.push_back({p.coefficient / k, p.atom});
        else
            low.parts.push_back(p);
    }
    if (low.largest() < k) return {high, low};
    Index whole = value.index();
    std::vector<int> vars;
    whole.collect(vars);
    auto [first, last] = std::minmax_element(vars.begin(), vars.end());
    return {of_atom({whole / k, quotient_extent, *first, *last}), of_atom({whole % k, k, *first, *last})};
}

class Solver {
public:
    Solver(const Statement& statement, std::span<const SolvedLoop> loops) : s_(statement) {
        for (const SolvedLoop& loop : loops) {
            AxisDigit digit = normal_axis(loop.axis);
            know(digit, of_atom({Index::variable(loop.var), digit.extent(), loop.var, loop.var}));
        }
    }

    Solution run() {
        Solution out;
        for (const Iterator& axis : s_.axes) {
            Term leaf = axis_leaf(axis.name, axis.extent);
            if (axis.extent == 1) {
                out.iterators.emplace_back();
                continue;
            }
            auto it = closed_.find(leaf);
            if (it == closed_.end()) missing(axis, leaf);
            out.iterators.push_back(it->second);
        }
        out.conditions = std::move(conditions_);
        for (std::size_t d = 0; d < s_.write.index.size() && s_.write.padded; ++d) {  // an instance that would write beyond the output does not exist
            Linear at;
            for (std::size_t a = 0; a < s_.axes.size(); ++a) at.add(out.iterators[a], s_.write.index[d].coefficients[a]);
            at.offset += s_.write.index[d].offset;
            if (at.largest() >= s_.buffers[0].shape[d]) out.conditions.push_back({at, s_.buffers[0].shape[d]});
        }
        return out;
    }

private:
    struct Digit {
        std::int64_t stride, limit;
        Linear value;
    };

    // Records a digit and, when all digits of its base are known, the axes that the base is made of.
    void know(const AxisDigit& digit, const Linear& value) {
        if (digit.extent() == 1 && digit.base.integer()) return;
        auto& digits = known_[digit.base];
        for (const Digit& d : digits)
            if (digit.stride < d.limit && d.stride < digit.limit) twice(digit);
        digits.push_back({digit.stride, digit.limit, value});
        std::int64_t covered = 0;
        std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
        std::int64_t reach = 1;
        for (const Digit& d : digits) {
            if (d.stride != reach) return;
            reach = d.limit;
            covered += 1;
        }
        if (reach != digit.base_extent || covered == 0) return;
        Linear whole;
        for (const Digit& d : digits) whole.add(d.value, d.stride);
        if (whole.largest() >= digit.base_extent) conditions_.push_back({whole, digit.base_extent});
        close(digit.base, digit.base_extent, whole);
    }

    void close(const Term& base, std::int64_t extent, const Linear& value) {
        if (base.size() == 0) {
            closed_.emplace(base, value);
        } else if (base.is("span", 3)) {
            Linear moved = value;
            moved.offset += *base[1].integer();
            know(normal_axis(base[0]), moved);
        } else if (base.is("pair", 2)) {
            AxisDigit outer = normal_axis(base[0]), inner = normal_axis(base[1]);
            auto [high, low] = divided(value, inner.extent(), outer.extent());
            know(outer, high);
            know(inner, low);
        } else if (base.is("diag", 3)) {
            AxisDigit a = normal_axis(base[1]), b = normal_axis(base[2]);
            know(quotient(a, a.extent() / extent), value);
            know(quotient(b, b.extent() / extent), value);
        } else {
            know(normal_axis(base), value);
        }
    }

    [[noreturn]] void twice(const AxisDigit& digit) const {
        throw UserError("'" + to_string(to_term(digit)) + "' is walked by more than one loop in a schedule of " + to_string(s_.term));
    }

    [[noreturn]] void missing(const Iterator& axis, const Term& leaf) const {
        auto it = known_.find(leaf);
        std::string what = it == known_.end() ? "no loop walks '" + axis.name + "'" : "the loops over '" + axis.name + "' leave some of its digits out";
        throw UserError(what + " in a schedule of " + to_string(s_.term));
    }

    const Statement& s_;
    std::unordered_map<Term, std::vector<Digit>> known_;
    std::unordered_map<Term, Linear> closed_;
    std::vector<Condition> conditions_;
};

}  // namespace

Solution solve(const Statement& statement, std::span<const SolvedLoop> loops) { return Solver(statement, loops).run(); }

}  // namespace loopegg
