#include "nest/sketch.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "nest/axis.hpp"
#include "nest/domain.hpp"
#include "nest/loop_tree.hpp"
#include "nest/statement.hpp"

namespace loopegg {
namespace {

Term quo(const Term& axis, std::int64_t k) { return k == 1 ? axis : Term("quo", {axis, Term(k)}); }
Term rem(const Term& axis, std::int64_t k) { return Term("rem", {axis, Term(k)}); }

// One loop of the naive schedule, by what it means for the output.
struct NaiveLoop {
    Term axis;
    std::int64_t extent;
    bool reduction;              // walks no output element
    bool contiguous;             // walks the output's innermost dimension
    bool weights_only;           // no input depends on it: one input value serves all of its iterations
};

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

std::vector<NaiveLoop> loops_of(const Statement& statement, Term sched) {
    std::vector<NaiveLoop> loops;
    for (; sched.is("at", 2); sched = sched[1]) {
        bool reduction = true, contiguous = false, weights_only = true;
        for (const Term& leaf : iterators_of(sched[0])) {
            const int a = statement.axis(axis_name(leaf)->name);
            reduction = reduction && !statement.writes_axis(a);
            contiguous = contiguous || statement.write.index.back().coefficients[static_cast<std::size_t>(a)] == 1;
            for (const Access& r : statement.reads)
                if (statement.buffers[static_cast<std::size_t>(r.buffer)].kind == BufferKind::input)
                    for (const Affine& d : r.index) weights_only = weights_only && d.coefficients[static_cast<std::size_t>(a)] == 0;
        }
        loops.push_back({sched[0], axis_extent(sched[0]), reduction, contiguous, weights_only});
    }
    return loops;
}

// How one list of loops is tiled.
struct Tiling {
    std::size_t vector_loop;            // which loop the lanes run along
    std::int64_t vector = 1;            // lanes
    std::int64_t vectors = 1;           // vectors of that loop in the tile
    std::optional<std::size_t> other;   // a second output loop in the tile, and how much of it
    std::int64_t other_tile = 1;
    std::optional<std::size_t> third;
    std::int64_t third_tile = 1;
    std::int64_t rows = 0;              // >0: the cores share blocks of so many of the loop before the contiguous one
    bool unroll_first = true;           // unroll all small reductions, or only the innermost
    double accumulators() const { return static_cast<double>(vectors * other_tile * third_tile); }
};

class Builder {
public:
    Builder(const Statement& statement, std::vector<NaiveLoop> loops) : statement_(statement), loops_(std::move(loops)) {}

    Term build(const Tiling& t) const {
        std::vector<Term> outer, tile, lanes;
        std::optional<Term> shared;
        for (std::size_t i = 0; i < loops_.size(); ++i) {
            const NaiveLoop& l = loops_[i];
            if (l.reduction) continue;
            const bool vector = i == t.vector_loop;
            const std::int64_t size = vector ? t.vectors : t.other == i ? t.other_tile : t.third == i ? t.third_tile : 1;
            Cut c = cut(l.axis, l.extent, size, vector ? t.vector : 1);
            if (c.middle) tile.push_back(c.middle);
            if (c.lanes) lanes.push_back(c.lanes);
            if (!c.outer) continue;
            if (t.rows > 0 && row_loop() == i && size == 1 && t.rows < l.extent) {
                shared = quo(l.axis, t.rows);
                if (t.rows > 1) outer.push_back(rem(l.axis, t.rows));
            } else {
                outer.push_back(c.outer);
            }
        }
        if (shared) outer.insert(outer.begin(), *shared);
        return wrap(t, outer, tile, lanes);
    }

    // The output loop before the contiguous one: rows of an image.
    std::optional<std::size_t> row_loop() const {
        std::optional<std::size_t> row;
        for (std::size_t i = 0; i < loops_.size(); ++i) {
            if (loops_[i].reduction) continue;
            if (loops_[i].contiguous) return row;
            row = i;
        }
        return row;
    }

    const std::vector<NaiveLoop>& loops() const { return loops_; }

private:
    bool padded() const {
        return std::any_of(statement_.reads.begin(), statement_.reads.end(), [](const Access& a) { return a.padded; });
    }

    Term wrap(const Tiling& t, std::vector<Term> outer, const std::vector<Term>& tile, const std::vector<Term>& lanes) const {
        Term s("done");
        for (auto it = lanes.rbegin(); it != lanes.rend(); ++it) s = Term("vec", {*it, s});
        for (auto it = tile.rbegin(); it != tile.rend(); ++it) s = Term("unroll", {*it, s});
        bool any_reduction = false, innermost = true;
        for (std::size_t i = loops_.size(); i-- > 0;) {
            if (!loops_[i].reduction) continue;
            const bool small = loops_[i].extent <= 8 && (t.unroll_first || innermost);
            s = Term(small ? "unroll" : "at", {loops_[i].axis, s});
            any_reduction = true, innermost = false;
        }
        if (any_reduction) s = Term("stage", {Term("O"), s});
        const bool copy_inside = t.rows > 0;
        for (std::size_t i = outer.size(); i-- > 1;) s = Term("at", {outer[i], s});
        if (padded() && copy_inside) s = Term("stage", {Term("I"), s});
        if (!outer.empty()) s = Term("par", {outer[0], s});
        if (padded() && !copy_inside) s = Term("stage", {Term("I"), s});
        return s;
    }

    const Statement& statement_;
    std::vector<NaiveLoop> loops_;
};

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most) {
    std::vector<std::int64_t> out;
    for (std::int64_t k = 1; k <= std::min(n, most); ++k)
        if (n % k == 0) out.push_back(k);
    return out;
}

// Larger is better: enough accumulators to hide the latency of a multiply-add, not more than fit, whole vectors, work for every core.
double promise(const Builder& b, const Tiling& t, const VectorMachine& m) {
    constexpr double enough = 12;
    const double needed = t.accumulators() + static_cast<double>(std::min(t.vectors, t.other_tile * t.third_tile)) + 1;
    double score = std::min(t.accumulators(), enough) / enough + 0.1 * std::min(t.accumulators(), 24.0) / 24.0;
    if (needed > m.registers) score -= 1;
    score -= 0.1 * static_cast<double>(t.vectors + t.other_tile * t.third_tile) / t.accumulators();   // loads for each multiply-add: the squarer, the fewer
    score += static_cast<double>(t.vector) / m.lanes;
    double tasks = 1;
    if (t.rows > 0) {
        tasks = static_cast<double>(b.loops()[*b.row_loop()].extent) / static_cast<double>(t.rows);
    } else {
        for (std::size_t i = 0; i < b.loops().size(); ++i) {
            const NaiveLoop& l = b.loops()[i];
            if (l.reduction) continue;
            const double size = static_cast<double>(i == t.vector_loop ? t.vector * t.vectors : t.other == i ? t.other_tile : t.third == i ? t.third_tile : 1);
            if (static_cast<double>(l.extent) > size) { tasks = static_cast<double>(l.extent) / size; break; }
        }
    }
    const double rounds = std::ceil(tasks / m.cores);
    score += tasks / (rounds * m.cores);   // 1 when every core is busy to the end
    if (t.other && b.loops()[*t.other].contiguous) score += 0.1;   // neighbours in memory
    if (!t.unroll_first) score += 0.02;    // shorter code compiles sooner and is rarely slower
    return score;
}

std::vector<Term> tilings(const Statement& statement, std::vector<NaiveLoop> loops, const VectorMachine& m, std::size_t limit) {
    Builder builder(statement, std::move(loops));
    std::vector<std::pair<double, Term>> found;
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < builder.loops().size(); ++i)
        if (!builder.loops()[i].reduction) outputs.push_back(i);
    for (std::size_t v : outputs) {
        const NaiveLoop& along = builder.loops()[v];
        if (!along.contiguous && !along.weights_only) continue;
        for (std::int64_t vector : {m.lanes, m.lanes / 2, m.lanes / 4}) {
            if (vector < 2 || along.extent % vector != 0) continue;
            for (std::int64_t vectors : divisors(along.extent / vector, 4))
                for (std::size_t o : outputs) {
                    if (o == v) continue;
                    for (std::int64_t tile : divisors(builder.loops()[o].extent, m.registers)) {
                        std::vector<std::pair<std::optional<std::size_t>, std::int64_t>> thirds{{std::nullopt, 1}};
                        for (std::size_t p : outputs)
                            if (p < o && p != v && tile == builder.loops()[o].extent)
                                for (std::int64_t k : divisors(builder.loops()[p].extent, 8))
                                    if (k > 1) thirds.emplace_back(p, k);
                        for (auto [third, third_tile] : thirds)
                            for (bool unroll : {true, false}) {
                                Tiling t{v, vector, vectors, o, tile, third, third_tile, 0, unroll};
                                if (t.accumulators() >= m.registers) continue;
                                found.emplace_back(promise(builder, t, m), builder.build(t));
                                auto row = builder.row_loop();
                                if (!row || *row == o || *row == v || third == row) continue;
                                for (std::int64_t rows : divisors(builder.loops()[*row].extent, 8)) {
                                    t.rows = rows;
                                    found.emplace_back(promise(builder, t, m), builder.build(t));
                                }
                            }
                    }
                }
            if (outputs.size() == 1)
                for (std::int64_t vectors : divisors(along.extent / vector, 8)) {
                    Tiling t{v, vector, vectors, {}, 1, {}, 1, 0, true};
                    found.emplace_back(promise(builder, t, m), builder.build(t));
                }
        }
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Term> out;
    for (auto& [score, term] : found) {
        if (out.size() >= limit) break;
        if (std::find(out.begin(), out.end(), term) == out.end()) out.push_back(std::move(term));
    }
    return out;
}

// The k-th best tiling of every part of a cat.
std::vector<Term> schedules(const Statement& statement, const Term& sched, const VectorMachine& m, std::size_t limit) {
    if (!sched.is("cat", 2)) {
        std::vector<Term> out = tilings(statement, loops_of(statement, sched), m, limit);
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
