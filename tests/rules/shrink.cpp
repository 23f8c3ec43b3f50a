#include "shrink.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/statement.hpp"
#include "nest/term/wrapped_statement.hpp"

namespace loopegg {
namespace {

// Smaller is better: the parts of the term, loops of a special kind, the sum of all numbers.
struct Size {
    std::int64_t parts = 0, special = 0, numbers = 0;
    auto as_tuple() const { return std::tuple(parts, special, numbers); }
};

void measure(const Term& t, Size& size) {
    ++size.parts;
    const std::string& op = t.op().text();
    if (is_loop_operator(op) && op != "at") ++size.special;
    if (t.size() == 0) {
        if (auto value = t.integer())
            size.numbers += std::abs(*value);
        else if (auto name = axis_name(t); name && name->extent > 0)
            size.numbers += name->extent;
    }
    for (const Term& child : t.children()) measure(child, size);
}

bool smaller(const Term& a, const Term& b) {
    Size x, y;
    measure(a, x), measure(b, y);
    return x.as_tuple() < y.as_tuple();
}

Term with_child(const Term& t, std::size_t i, Term child) {
    std::vector<Term> children(t.children().begin(), t.children().end());
    children[i] = std::move(child);
    return Term(t.op(), std::move(children));
}

Term loop(const Term& axis, const Term& rest) { return Term("at", {axis, rest}); }

// An axis over iterators of other extents; none when nothing of it is left to walk.
Term resized_axis(const Term& axis, const Statement& s) {
    if (axis.size() == 0) {
        auto name = axis_name(axis);
        if (axis.integer() || !name) return axis;
        int at = s.axis(name->name);
        if (at < 0) return {};
        std::int64_t extent = s.axes[static_cast<std::size_t>(at)].extent;
        return extent > 1 ? axis_leaf(name->name, extent) : Term();
    }
    if (axis.is("diag", 3)) {
        Term a = resized_axis(axis[1], s), b = resized_axis(axis[2], s);
        return a && b ? Term("diag", {axis[0], a, b}) : Term();
    }
    if (axis.is("pair", 2)) {
        Term a = resized_axis(axis[0], s), b = resized_axis(axis[1], s);
        return !a ? b : !b ? a : Term("pair", {a, b});
    }
    Term inner = resized_axis(axis[0], s);
    if (!inner) return {};
    if (!axis.is("span", 3)) return with_child(axis, 0, inner);
    std::int64_t lo = *axis[1].integer(), hi = std::min(*axis[2].integer(), axis_extent(inner));
    return Term("span", {inner, Term(std::min(lo, hi - 1)), Term(hi)});
}

Term resized(const Term& sched, const Statement& s) {
    if (sched.size() == 0) return sched;
    if (sched.is("cat", 2)) return Term("cat", {resized(sched[0], s), resized(sched[1], s)});
    Term rest = resized(sched[sched.size() - 1], s);
    if (!is_loop_operator(sched.op().text())) return with_child(sched, sched.size() - 1, rest);
    Term axis = resized_axis(loop_axis(sched), s);
    return axis ? with_child(with_child(sched, sched.size() - 1, rest), sched.size() - 2, axis) : rest;
}

// A term with one of its numbers made smaller.
std::vector<Term> smaller_numbers(const Term& t) {
    std::vector<Term> all;
    if (auto value = t.integer(); value && t.size() == 0)
        for (std::int64_t less : std::array<std::int64_t, 5>{0, 1, 2, *value / 2, *value - 1})
            if (less < *value) all.emplace_back(less);
    for (std::size_t i = 0; i < t.size(); ++i)
        for (Term& child : smaller_numbers(t[i])) all.push_back(with_child(t, i, std::move(child)));
    return all;
}

// Statements with one number made smaller, or without their outermost epilogue or layout.
std::vector<Term> smaller_statements(const Term& stmt) {
    if (!is_wrapper(stmt)) return smaller_numbers(stmt);
    std::size_t last = stmt.size() - 1;
    std::vector<Term> all{stmt[last]};
    for (const Term& inner : smaller_statements(stmt[last])) all.push_back(with_child(stmt, last, inner));
    return all;
}

// Statements with two numbers changed at once: an image that needs no padding may be larger than one that does.
std::vector<Term> traded_statements(const Term& stmt) {
    std::vector<Term> all;
    for (std::size_t i = 0; i < stmt.size(); ++i)
        for (std::size_t j = i + 1; j < stmt.size(); ++j)
            for (std::int64_t a : {0, 1, 2})
                for (std::int64_t b : {0, 1, 2})
                    if (stmt[i].integer() && stmt[j].integer()) all.push_back(with_child(with_child(stmt, i, Term(a)), j, Term(b)));
    return all;
}

bool walks(const Term& axis, const Term& leaf) {
    auto leaves = iterators_of(axis);
    return leaves.size() == 1 && leaves[0] == leaf;
}

// All loops over digits of one iterator as one loop, at the place of the first.
Term whole_loop(const Term& sched, const Term& leaf, bool seen = false) {
    if (sched.size() == 0) return sched;
    if (sched.is("cat", 2)) return Term("cat", {whole_loop(sched[0], leaf, seen), whole_loop(sched[1], leaf, seen)});
    bool here = is_loop_operator(sched.op().text()) && walks(loop_axis(sched), leaf);
    Term rest = whole_loop(sched[sched.size() - 1], leaf, seen || here);
    if (!here) return with_child(sched, sched.size() - 1, rest);
    return seen ? rest : with_child(with_child(sched, sched.size() - 1, rest), sched.size() - 2, leaf);
}

// Every schedule that is one step plainer.
std::vector<Term> plainer(const Term& sched) {
    std::vector<Term> all;
    if (sched.size() == 0) return all;
    const std::string& op = sched.op().text();
    if (sched.is("cat", 2)) {
        all.push_back(sched[0]), all.push_back(sched[1]);
        for (std::size_t part : {0u, 1u})
            if (is_loop_operator(sched[part].op().text()) && loop_axis(sched[part]).is("span", 3))
                all.push_back(with_child(sched[part], sched[part].size() - 2, loop_axis(sched[part])[0]));
        for (std::size_t part : {0u, 1u})
            for (const Term& less : plainer(sched[part])) all.push_back(with_child(sched, part, less));
        return all;
    }
    std::size_t last = sched.size() - 1;
    all.push_back(sched[last]);
    if (is_loop_operator(op)) {
        const Term& axis = loop_axis(sched);
        if (op != "at") all.push_back(loop(axis, sched[last]));
        if (axis.is("pair", 2)) all.push_back(loop(axis[0], loop(axis[1], sched[last])));
        if (axis.size() > 0 && axis[0].size() + axis[axis.size() - 1].size() > 0)
            for (const Term& child : axis.children())
                if (!child.integer()) all.push_back(with_child(sched, last - 1, child));
        for (const Term& leaf : iterators_of(axis)) all.push_back(with_child(sched, last - 1, leaf));
        for (const Term& less : smaller_numbers(axis)) all.push_back(with_child(sched, last - 1, less));
    }
    for (const Term& less : plainer(sched[last])) all.push_back(with_child(sched, last, less));
    return all;
}

void add_resized(const Term& nest, const std::vector<Term>& statements, std::vector<Term>& all) {
    for (const Term& stmt : statements) {
        try {
            all.push_back(Term("nest", {stmt, resized(nest[1], statement_of(stmt))}));
        } catch (const UserError&) {  // a window larger than its image
        }
    }
}

// `far`: the many that are worth a try when no near one does.
std::vector<Term> candidates(const Term& nest, bool far) {
    if (nest.is("restore", 2)) {
        std::vector<Term> all{nest[1]};
        for (const Term& inner : candidates(nest[1], far)) all.push_back(with_child(nest, 1, inner));
        return all;
    }
    std::vector<Term> all;
    if (far) {
        add_resized(nest, traded_statements(nest[0]), all);
        return all;
    }
    add_resized(nest, smaller_statements(nest[0]), all);
    for (const Iterator& it : statement_of(nest[0]).axes)
        if (it.extent > 1) all.push_back(with_child(nest, 1, whole_loop(nest[1], axis_leaf(it.name, it.extent))));
    for (const Term& sched : plainer(nest[1])) all.push_back(with_child(nest, 1, sched));
    return all;
}

}  // namespace

Term shrink_nest(const Term& nest, const Complaint& complaint) {
    auto asked = [&](const Term& t) -> std::string {
        try {
            return complaint(t);
        } catch (const UserError&) {
            return "";
        }
    };
    const std::string words = asked(nest);
    Term best = nest;
    auto improved = [&](bool far) {
        std::vector<Term> all = candidates(best, far);
        std::sort(all.begin(), all.end(), smaller);
        auto found = std::find_if(all.begin(), all.end(), [&](const Term& t) { return smaller(t, best) && asked(t) == words; });
        if (found != all.end()) best = *found;
        return found != all.end();
    };
    while (!words.empty() && (improved(false) || improved(true))) {
    }
    return best;
}

}  // namespace loopegg
