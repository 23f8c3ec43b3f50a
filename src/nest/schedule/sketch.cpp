#include "nest/schedule/sketch.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "nest/term/axis.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/schedule/tiling.hpp"

namespace loopegg {
namespace {

Term quo(const Term& axis, std::int64_t k) { return k == 1 ? axis : Term("quo", {axis, Term(k)}); }
Term rem(const Term& axis, std::int64_t k) { return Term("rem", {axis, Term(k)}); }

// An axis cut into outer, middle (register tile) and vector digits; loops of extent 1 are left out.
struct Cut {
    Term outer, middle, lanes;
};
Cut cut(const Term& axis, std::int64_t extent, std::int64_t tile, std::int64_t vector) {
    Cut c;
    if (extent > tile * vector) c.outer = quo(axis, tile * vector);
    if (tile > 1) c.middle = extent > tile * vector ? (vector == 1 ? rem(axis, tile) : rem(quo(axis, vector), tile)) : quo(axis, vector);
    if (vector > 1) c.lanes = extent > vector ? rem(axis, vector) : axis;
    return c;
}

class Builder {
public:
    explicit Builder(const NaiveLoops& nest) : nest_(nest) {}

    Term build(const Tiling& t) const {
        std::vector<Term> outer, tile, lanes;
        std::optional<Term> shared;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
            const NaiveLoop& l = nest_.loops[i];
            if (l.reduction) continue;
            const bool vector = i == t.vector_loop;
            const std::int64_t size = t.size(i);
            Cut c = cut(l.axis, l.extent, size, vector ? t.vector : 1);
            if (c.middle) tile.push_back(c.middle);
            if (c.lanes) lanes.push_back(c.lanes);
            if (!c.outer) continue;
            if (t.rows > 0 && nest_.row_loop() == i && size == 1 && t.rows < l.extent) {
                shared = quo(l.axis, t.rows);
                if (t.rows > 1) outer.push_back(rem(l.axis, t.rows));
            } else {
                outer.push_back(c.outer);
                if (vector && t.weights_stay) std::rotate(outer.begin(), outer.end() - 1, outer.end());
            }
        }
        if (shared) outer.insert(outer.begin(), *shared);
        return wrap(t, outer, tile, lanes);
    }

private:
    Term wrap(const Tiling& t, std::vector<Term> outer, const std::vector<Term>& tile, const std::vector<Term>& lanes) const {
        Term s("done");
        for (auto it = lanes.rbegin(); it != lanes.rend(); ++it) s = Term("vec", {*it, s});
        for (auto it = tile.rbegin(); it != tile.rend(); ++it) s = Term("unroll", {*it, s});
        bool any_reduction = false;
        for (std::size_t i = nest_.loops.size(); i-- > 0;) {
            const NaiveLoop& l = nest_.loops[i];
            if (!l.reduction) continue;
            any_reduction = true;
            const std::int64_t unrolled = t.unrolled(nest_, i);
            if (unrolled > 1) s = Term("unroll", {unrolled < l.extent ? rem(l.axis, unrolled) : l.axis, s});
            if (unrolled < l.extent) s = Term("at", {quo(l.axis, unrolled), s});
        }
        if (any_reduction) s = Term("stage", {Term("O"), s});
        const bool copy_inside = t.rows > 0;
        for (std::size_t i = outer.size(); i-- > 1;) s = Term("at", {outer[i], s});
        if (nest_.padded && copy_inside) s = Term("stage", {Term("I"), s});
        if (!outer.empty()) s = Term("par", {outer[0], s});
        if (nest_.padded && !copy_inside) s = Term("stage", {Term("I"), s});
        return s;
    }

    const NaiveLoops& nest_;
};

// Ways to hand out one tile to the cores, and to unroll its reductions.
void add_shared(std::vector<Tiling>& all, const NaiveLoops& nest, Tiling t) {
    const NaiveLoop& along = nest.loops[t.vector_loop];
    const auto row = nest.row_loop();
    for (bool unroll : {true, false}) {
        t.unroll_first = unroll;
        all.push_back(t);
        if (along.weights_only && along.extent > t.vector * t.vectors) {
            all.push_back(t);
            all.back().weights_stay = true;
        }
        if (!row || row == t.other || *row == t.vector_loop || row == t.third) continue;
        for (std::int64_t rows : divisors(nest.loops[*row].extent, 8)) {
            all.push_back(t);
            all.back().rows = rows;
        }
    }
}

std::vector<Tiling> every_tiling(const NaiveLoops& nest, const VectorMachine& m) {
    const std::vector<NaiveLoop>& loops = nest.loops;
    std::vector<Tiling> all;
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < loops.size(); ++i)
        if (!loops[i].reduction) outputs.push_back(i);
    for (std::size_t v : outputs) {
        const NaiveLoop& along = loops[v];
        if (!along.contiguous && !along.weights_only) continue;
        for (std::int64_t vector : {m.lanes, m.lanes / 2, m.lanes / 4}) {
            if (vector < 2 || along.extent % vector != 0) continue;
            for (std::int64_t vectors : divisors(along.extent / vector, 4))
                for (std::size_t o : outputs) {
                    if (o == v) continue;
                    for (std::int64_t tile : divisors(loops[o].extent, m.registers)) {
                        std::vector<std::pair<std::optional<std::size_t>, std::int64_t>> thirds{{std::nullopt, 1}};
                        for (std::size_t p : outputs)
                            if (p < o && p != v && tile == loops[o].extent)
                                for (std::int64_t k : divisors(loops[p].extent, 8))
                                    if (k > 1) thirds.emplace_back(p, k);
                        for (auto [third, third_tile] : thirds)
                            if (const Tiling t{v, vector, vectors, o, tile, third, third_tile}; t.accumulators() < m.registers) add_shared(all, nest, t);
                    }
                }
            if (outputs.size() == 1)
                for (std::int64_t vectors : divisors(along.extent / vector, 8)) all.push_back({v, vector, vectors});
        }
    }
    return all;
}

std::vector<Term> tilings(const NaiveLoops& nest, const VectorMachine& m, std::size_t limit) {
    std::vector<std::pair<double, Tiling>> found;
    for (const Tiling& t : every_tiling(nest, m)) found.emplace_back(tiling_cost(nest, t, m), t);
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const Builder builder(nest);
    std::vector<Term> out;
    for (const auto& [cost, tiling] : found) {
        if (out.size() >= limit) break;
        if (Term term = builder.build(tiling); std::find(out.begin(), out.end(), term) == out.end()) out.push_back(std::move(term));
    }
    return out;
}

// The k-th best tiling of every part of a cat.
std::vector<Term> schedules(const Statement& statement, const Term& sched, const VectorMachine& m, std::size_t limit) {
    if (!sched.is("cat", 2)) {
        std::vector<Term> out = tilings(naive_loops(statement, sched), m, limit);
        if (out.empty()) out.push_back(sched);
        return out;
    }
    const auto a = schedules(statement, sched[0], m, limit), b = schedules(statement, sched[1], m, limit);
    std::vector<Term> out;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()) && out.size() < limit; ++i)
        out.push_back(Term("cat", {a[std::min(i, a.size() - 1)], b[std::min(i, b.size() - 1)]}));
    return out;
}

// Tiles are cut by extents alone; where a restriction cuts across a digit the cut can miss part of it, and resolve() says so.
bool is_schedule(const Term& nest) {
    try {
        resolve(nest);
        return true;
    } catch (const UserError&) {
        return false;
    }
}

}  // namespace

std::vector<Term> sketches(const Term& nest, const VectorMachine& machine, std::size_t limit) {
    const NestParts parts = nest_parts(nest);
    const Statement statement = statement_of(parts.statement);
    const Term naive = schedule_of(statement, domain_of(nest));
    std::vector<Term> all = schedules(statement, naive, machine, limit);
    if (std::find(all.begin(), all.end(), naive) == all.end()) all.push_back(naive);
    std::vector<Term> out;
    for (const Term& s : all) {
        Term whole("nest", {parts.statement, s});
        if (!parts.restore.empty()) whole = Term("restore", {Term(parts.restore), whole});
        if (is_schedule(whole)) out.push_back(std::move(whole));
    }
    if (out.empty()) out.push_back(nest);
    return out;
}

}  // namespace loopegg
