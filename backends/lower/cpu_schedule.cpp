// Default schedules for processors with vectors and a few cores.
#include <algorithm>

#include "backends/lower/schedule_pieces.hpp"

namespace loopegg {
namespace {

// One output at a time, its window written out: strided depthwise convolutions and pools.
Term narrow_windows(const Roles& r, const std::vector<Piece>& channels, const Piece& oh, const Piece& ow, const std::vector<Piece>& window, bool padded) {
    LoopList loops;
    std::vector<Term> parallel;
    for (const Piece& p : r.outer) parallel.push_back(p.axis);
    for (const Piece& p : channels)
        if (p.extent > 1) parallel.push_back(p.axis);
    if (!parallel.empty()) loops.add("par", fused(parallel));
    if (padded) loops.stage(Term("I"));
    for (const Piece* p : {&oh, &ow})
        if (p->extent > 1) loops.add("at", p->axis);
    loops.stage(Term("O"));
    for (const Piece& p : r.summed) loops.add("at", p.axis);
    for (const Piece& p : window)
        if (p.extent > 1) loops.add(p.extent <= 3 ? "unroll" : "at", p.axis);
    return loops.term();
}

// The register tile of a convolution or product: vectors along one output axis, `rows` of them per step of the reduction.
Term cpu_convolution(const Statement& s, const Roles& r, const Machine& m) {
    const Piece n = r.get("n"), g = r.get("g"), co = r.get("co"), ci = r.get("ci"), oh = r.get("oh"), ow = r.get("ow"), kh = r.get("kh"), kw = r.get("kw");
    const std::int64_t lanes = m.lanes, budget = lanes == 8 ? 8 : 16;
    const bool padded = std::any_of(s.reads.begin(), s.reads.end(), [](const Access& a) { return a.padded; });
    // Strided reads make poor vectors of ours; LLVM makes better ones of a plain loop over columns.
    const bool strided = number(s, 9) > 1;
    if (strided && co.extent < 4) return narrow_windows(r, {n, g, co}, oh, ow, {ci, kh, kw}, padded);
    const bool along_width = !strided && (ow.extent % lanes == 0 || co.extent < lanes / 2);
    std::int64_t width = 1, height = 1, channels = 1, vector = 1;
    if (along_width || co.extent < 4) {
        width = ow.extent % lanes == 0 ? lanes : largest_divisor(ow.extent, 2 * lanes);
        height = largest_divisor(oh.extent, co.extent == 1 ? 4 : 2);
        channels = largest_divisor(co.extent, budget / height);
    } else {
        vector = co.extent % lanes == 0 ? lanes : largest_divisor(co.extent, lanes);
        width = largest_divisor(ow.extent, budget);
        height = largest_divisor(oh.extent, std::max<std::int64_t>(1, budget / width));
        channels = width * height <= budget / 2 && co.extent % (2 * vector) == 0 ? 2 * vector : vector;
    }
    const Cut c = cut(co, channels), y = cut(oh, height), x = cut(ow, width);
    LoopList loops;
    std::vector<Term> parallel;
    for (const Piece& p : r.outer) parallel.push_back(p.axis);
    for (const Piece& p : {n, g})
        if (p.extent > 1) parallel.push_back(p.axis);
    // A group of its own input: the padded tile is copied for each group by the thread that uses it. Else one copy serves all.
    const bool own_input = g.extent > 1 && co.extent <= 4;
    if (padded && !own_input) loops.stage(Term("I"));
    if (c.outer && !own_input) parallel.push_back(*c.outer);
    if (y.outer && !own_input) parallel.push_back(*y.outer);
    if (!parallel.empty()) loops.add("par", fused(parallel));
    if (padded && own_input) loops.stage(Term("I"));
    if (c.outer && own_input) loops.add("at", *c.outer);
    if (y.outer && own_input) loops.add("at", *y.outer);
    if (x.outer) loops.add("at", *x.outer);
    loops.stage(Term("O"));
    for (const Piece& p : r.summed) loops.add("at", p.axis);
    if (ci.extent > 1) loops.add("at", ci.axis);
    const bool small_kernel = kh.extent * kw.extent <= 9;
    if (kh.extent > 1) loops.add(small_kernel ? "unroll" : "at", kh.axis);
    if (kw.extent > 1) loops.add(kw.extent <= 7 ? "unroll" : "at", kw.axis);
    if (vector == 1) {
        if (c.inner) loops.add("unroll", *c.inner);
        if (y.inner) loops.add("unroll", *y.inner);
        if (x.inner) loops.add("vec", *x.inner);
    } else {
        if (y.inner) loops.add("unroll", *y.inner);
        if (x.inner) loops.add("unroll", *x.inner);
        if (channels > vector) loops.add("unroll", Term("quo", {*c.inner, Term(vector)})), loops.add("vec", Term("rem", {*c.inner, Term(vector)}));
        else loops.add("vec", *c.inner);
    }
    return loops.term();
}

// Matrix products: rows unrolled, columns in vectors.
Term cpu_product(const Roles& r, const Machine& m, const std::string& row, const std::string& column, const std::string& sum) {
    const Piece i = r.get(row), j = r.get(column), k = r.get(sum), b = r.get("b");
    std::int64_t lanes = j.extent % m.lanes == 0 ? m.lanes : largest_divisor(j.extent, m.lanes);
    const std::int64_t rows = largest_divisor(i.extent, 8);
    const std::int64_t most = rows >= 4 ? 2 : 4;
    const std::int64_t columns = lanes * largest_divisor(j.extent / lanes, most);
    const Cut y = cut(i, rows), x = cut(j, columns);
    LoopList loops;
    std::vector<Term> parallel;
    for (const Piece& p : r.outer) parallel.push_back(p.axis);
    if (b.extent > 1) parallel.push_back(b.axis);
    if (y.outer) parallel.push_back(*y.outer);
    if (x.outer) parallel.push_back(*x.outer);
    if (!parallel.empty()) loops.add("par", fused(parallel));
    loops.stage(Term("O"));
    for (const Piece& p : r.summed) loops.add("at", p.axis);
    if (k.extent > 1) loops.add("at", k.axis);
    if (y.inner) loops.add("unroll", *y.inner);
    if (columns > lanes && lanes > 1) loops.add("unroll", Term("quo", {*x.inner, Term(lanes)})), loops.add("vec", Term("rem", {*x.inner, Term(lanes)}));
    else if (x.inner) loops.add("vec", *x.inner);
    return loops.term();
}

Term cpu_pool(const Statement& s, const Roles& r, const Machine& m) {
    const Piece n = r.get("n"), c = r.get("c"), oh = r.get("oh"), ow = r.get("ow"), kh = r.get("kh"), kw = r.get("kw");
    const bool padded = std::any_of(s.reads.begin(), s.reads.end(), [](const Access& a) { return a.padded; });
    if (number(s, 7) > 1) return narrow_windows(r, {n, c}, oh, ow, {kh, kw}, padded);
    const Cut x = cut(ow, ow.extent % m.lanes == 0 ? m.lanes : largest_divisor(ow.extent, 2 * m.lanes));
    LoopList loops;
    std::vector<Term> parallel;
    for (const Piece& p : r.outer) parallel.push_back(p.axis);
    for (const Piece& p : {n, c})
        if (p.extent > 1) parallel.push_back(p.axis);
    if (!parallel.empty()) loops.add("par", fused(parallel));
    if (padded) loops.stage(Term("I"));
    if (oh.extent > 1) loops.add("at", oh.axis);
    if (x.outer) loops.add("at", *x.outer);
    loops.stage(Term("O"));
    for (const Piece& p : r.summed) loops.add("at", p.axis);
    if (kh.extent > 1) loops.add("at", kh.axis);
    if (kw.extent > 1) loops.add("at", kw.axis);
    if (x.inner) loops.add("vec", *x.inner);
    return loops.term();
}

// One long axis, or several of which the last is contiguous: parallel chunks of vectors. Small work stays on one core.
Term cpu_elementwise(const Statement& s, const std::vector<Piece>& all, const Machine& m) {
    LoopList loops;
    if (all.empty()) return loops.term();
    const bool spread = s.instances() >= 16384;
    std::vector<Term> parallel;
    for (std::size_t i = 0; i + 1 < all.size(); ++i) parallel.push_back(all[i].axis);
    const Piece& last = all.back();
    const std::int64_t lanes = last.extent % m.lanes == 0 ? m.lanes : largest_divisor(last.extent, 2 * m.lanes);
    const std::int64_t chunk = parallel.empty() ? lanes * largest_divisor(last.extent / lanes, 64) : last.extent;
    const Cut outer = cut(last, chunk);
    if (outer.outer) parallel.push_back(*outer.outer);
    if (!parallel.empty()) loops.add(spread ? "par" : "at", fused(parallel));
    if (!outer.inner) return loops.term();
    const Cut inner = cut({*outer.inner, chunk, "", true}, lanes);
    if (inner.outer) loops.add("at", *inner.outer);
    if (inner.inner) loops.add("vec", *inner.inner);
    return loops.term();
}

// Rows that are summed, or searched for their largest: several partial results along the row.
Term cpu_rows(const Roles& r, const Machine& m) {
    const Piece row = r.get("r"), s = r.get("s"), k = r.get("k");
    LoopList loops;
    std::vector<Term> parallel;
    for (const Piece& p : r.outer) parallel.push_back(p.axis);
    for (const Piece& p : {row, s})
        if (p.extent > 1) parallel.push_back(p.axis);
    if (!parallel.empty()) loops.add(row.extent * s.extent * k.extent >= 16384 ? "par" : "at", fused(parallel));
    for (const Piece& p : r.summed) loops.add("at", p.axis);
    const Cut x = cut(k, s.extent == 1 && k.extent % m.lanes == 0 ? m.lanes : 1);
    if (x.inner && x.outer) loops.partial("vec", *x.inner), loops.add("at", *x.outer);
    else if (k.extent > 1) loops.add("at", k.axis);
    return loops.term();
}

}  // namespace

std::optional<Term> cpu_schedule(const Statement& s, const std::vector<Piece>& all, const Machine& m) {
    const Roles r = roles(all);
    const std::string op = operation(s);
    if (op == "conv2d") return cpu_convolution(s, r, m);
    if (op == "linear") return cpu_product(r, m, "n", "co", "ci");
    if (op == "matmul") return cpu_product(r, m, "i", "j", "k");
    if (op.starts_with("max_pool") || op.starts_with("avg_pool")) return cpu_pool(s, r, m);
    if (op == "row_sum" || op == "row_mean" || op == "row_max" || op == "row_square" || op == "row_exp_sum") return cpu_rows(r, m);
    if (s.combine == Combine::assign) return cpu_elementwise(s, all, m);
    return {};
}

}  // namespace loopegg
