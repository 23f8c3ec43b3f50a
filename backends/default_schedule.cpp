#include "backends/default_schedule.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "nest/axis.hpp"
#include "nest/domain.hpp"
#include "nest/loop_tree.hpp"

namespace loopegg {
namespace {

// One loop of a nest: what it walks, whose digit that is ("" for a diagonal), and whether outputs depend on it.
struct Piece {
    Term axis;
    std::int64_t extent = 1;
    std::string iterator;
    bool output = true;
};

std::int64_t largest_divisor(std::int64_t n, std::int64_t at_most) {
    for (std::int64_t d = std::min(n, at_most); d > 1; --d)
        if (n % d == 0) return d;
    return 1;
}

// A list of loops under construction, outermost first; the term is made at the end.
class Loops {
public:
    void add(const char* kind, const Term& axis) { items_.push_back({kind, axis}); }
    void bind(const char* place, const Term& axis) { items_.push_back({std::string("bind ") + place, axis}); }
    void stage(const Term& buffer) { items_.push_back({"stage", buffer}); }
    void partial(const char* kind, const Term& axis) { items_.push_back({std::string("partial ") + kind, axis}); }
    Term term() const {
        Term t("done");
        for (auto it = items_.rbegin(); it != items_.rend(); ++it) {
            const auto space = it->first.find(' ');
            if (space == it->first.npos) t = Term(it->first, {it->second, t});
            else t = Term(it->first.substr(0, space), {Term(it->first.substr(space + 1)), it->second, t});
        }
        return t;
    }

private:
    std::vector<std::pair<std::string, Term>> items_;
};

// The outer and the inner part of a loop cut into blocks of k; either may be missing.
struct Cut {
    std::optional<Term> outer, inner;
    std::int64_t blocks = 1, size = 1;
};
Cut cut(const Piece& p, std::int64_t k) {
    if (k >= p.extent) return {{}, p.extent > 1 ? std::optional(p.axis) : std::nullopt, 1, p.extent};
    if (k <= 1) return {p.axis, {}, p.extent, 1};
    return {Term("quo", {p.axis, Term(k)}), Term("rem", {p.axis, Term(k)}), (p.extent + k - 1) / k, k};
}

Term fused(const std::vector<Term>& axes) {
    Term t = axes[0];
    for (std::size_t i = 1; i < axes.size(); ++i) t = Term("pair", {t, axes[i]});
    return t;
}

// The loops of one part by the iterator they walk. An iterator cut into several digits plays its role with the last of them.
struct Roles {
    std::vector<Piece> outer;      // loops that outputs depend on and that play no role: they go outside, in parallel
    std::vector<Piece> summed;     // reduction digits that play no role
    std::map<std::string, Piece> of;
    Piece get(const std::string& name) const {
        auto found = of.find(name);
        return found == of.end() ? Piece{Term(), 1, name, true} : found->second;
    }
};

std::optional<std::vector<Piece>> pieces(const Statement& s, const Term& sched) {
    std::vector<Piece> all;
    for (Term t = sched; !t.is("done", 0); t = t[1]) {
        if (!t.is("at", 2)) return {};
        Piece p{t[0], axis_extent(t[0]), "", false};
        const auto walked = iterators_of(t[0]);
        for (const Term& leaf : walked) p.output = p.output || s.writes_axis(s.axis(axis_name(leaf)->name));
        if (walked.size() == 1) p.iterator = axis_name(walked[0])->name;
        all.push_back(std::move(p));
    }
    return all;
}

Roles roles(const std::vector<Piece>& all) {
    Roles r;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Piece& p = all[i];
        bool last = !p.iterator.empty();
        for (std::size_t j = i + 1; last && j < all.size(); ++j) last = all[j].iterator != p.iterator;
        if (last) r.of[p.iterator] = p;
        else (p.output ? r.outer : r.summed).push_back(p);
    }
    return r;
}

std::int64_t number(const Statement& s, std::size_t i) {
    Term t = s.term;
    while (t.is("epilogue", 2) || t.is("layout", 4)) t = t[t.size() - 1];
    return t[i].integer().value_or(1);
}
std::string operation(const Statement& s) {
    Term t = s.term;
    while (t.is("epilogue", 2) || t.is("layout", 4)) t = t[t.size() - 1];
    return t.op().text();
}

// One output at a time, its window written out: strided depthwise convolutions and pools.
Term narrow_windows(const Roles& r, const std::vector<Piece>& channels, const Piece& oh, const Piece& ow, const std::vector<Piece>& window, bool padded) {
    Loops loops;
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
    Loops loops;
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
    Loops loops;
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
    Loops loops;
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
    Loops loops;
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
    Loops loops;
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

// GPUs: a block computes channels x rows x columns, its threads a few of each; chunks of the input and the weights pass through
// shared memory, all threads copying together.
std::optional<Term> gpu_convolution(const Statement& s, const Roles& r, const Machine& m) {
    const Piece n = r.get("n"), g = r.get("g"), co = r.get("co"), ci = r.get("ci"), oh = r.get("oh"), ow = r.get("ow"), kh = r.get("kh"), kw = r.get("kw");
    if (co.extent < 8 || ci.extent < 4 || !s.buffers[0].blocking.empty()) return {};
    const std::int64_t columns = largest_divisor(ow.extent, 16), rows = largest_divisor(oh.extent, std::max<std::int64_t>(1, 64 / columns));
    const std::int64_t others = n.extent * g.extent * (oh.extent / rows) * (ow.extent / columns);
    std::int64_t channels = largest_divisor(co.extent, 32);
    while (channels > 8 && co.extent / channels * others < 2 * m.cores) channels = largest_divisor(co.extent, channels - 1);
    const std::int64_t own_channels = largest_divisor(channels, channels >= 16 ? 4 : 2), own_rows = largest_divisor(rows, 2);
    const std::int64_t chunk = largest_divisor(ci.extent, kh.extent * kw.extent == 1 ? 16 : 8);
    const std::int64_t shared_floats = chunk * ((rows - 1) * number(s, 8) + kh.extent) * ((columns - 1) * number(s, 9) + kw.extent) + channels * chunk * kh.extent * kw.extent;
    if (shared_floats * 4 > 40000) return {};
    const Cut c = cut(co, channels), y = cut(oh, rows), x = cut(ow, columns), k = cut(ci, chunk);
    Loops loops;
    std::vector<Term> blocks;
    for (const Piece& p : r.outer) blocks.push_back(p.axis);
    for (const Piece& p : {n, g})
        if (p.extent > 1) blocks.push_back(p.axis);
    for (const Cut* part : {&c, &y, &x})
        if (part->outer) blocks.push_back(*part->outer);
    if (!blocks.empty()) loops.bind("blockIdx.x", fused(blocks));
    loops.stage(Term("O"));
    for (const Piece& p : r.summed) loops.add("at", p.axis);
    if (k.outer) loops.add("at", *k.outer);
    loops.stage(Term("shared", {Term("I")}));
    loops.stage(Term("shared", {Term("W")}));
    const Cut mine = cut({c.inner.value_or(co.axis), channels, "", true}, own_channels), lines = cut({y.inner.value_or(oh.axis), rows, "", true}, own_rows);
    if (mine.outer && channels > own_channels) loops.bind("threadIdx.y", *mine.outer);
    std::vector<Term> threads;
    if (lines.outer && rows > own_rows) threads.push_back(*lines.outer);
    if (x.inner) threads.push_back(*x.inner);
    if (!threads.empty()) loops.bind("threadIdx.x", fused(threads));
    if (k.inner) loops.add("at", *k.inner);
    for (const Piece& p : {kh, kw})
        if (p.extent > 1) loops.add(p.extent <= 3 ? "unroll" : "at", p.axis);
    if (mine.inner && own_channels > 1) loops.add("unroll", *mine.inner);
    if (lines.inner && own_rows > 1) loops.add("unroll", *lines.inner);
    return loops.term();
}

// GPUs: blocks over output tiles, threads over their elements, a few outputs of a thread in registers.
Term gpu_any(const Statement& s, const std::vector<Piece>& all) {
    std::vector<Piece> outputs, sums;
    for (const Piece& p : all) (p.output ? outputs : sums).push_back(p);
    Loops loops;
    std::optional<Term> unrolled;
    for (Piece& p : outputs)   // output channels share the input that a thread reads
        if (p.iterator == "co" && p.extent % 4 == 0 && s.combine != Combine::assign) {
            const Cut c = cut(p, 4);
            unrolled = c.inner;
            if (c.outer) p = {*c.outer, c.blocks, p.iterator, true};
            else p.extent = 1;
        }
    std::erase_if(outputs, [](const Piece& p) { return p.extent == 1; });
    std::vector<Term> block, thread;
    std::int64_t threads = 1;
    for (auto it = outputs.rbegin(); it != outputs.rend(); ++it) {
        const std::int64_t k = largest_divisor(it->extent, std::max<std::int64_t>(1, 128 / threads));
        const Cut c = cut(*it, k);
        if (c.inner) thread.insert(thread.begin(), *c.inner), threads *= c.size;
        if (c.outer) block.insert(block.begin(), *c.outer);
    }
    if (!block.empty()) loops.bind("blockIdx.x", fused(block));
    if (!thread.empty()) loops.bind("threadIdx.x", fused(thread));
    if (s.combine != Combine::assign) loops.stage(Term("O"));
    for (const Piece& p : sums) loops.add(p.extent <= 3 && !p.iterator.empty() && p.iterator[0] == 'k' && s.combine == Combine::sum ? "unroll" : "at", p.axis);
    if (unrolled) loops.add("unroll", *unrolled);
    return loops.term();
}

Term arranged(const Statement& s, const Term& sched, const Target& target) {
    if (sched.is("cat", 2)) return Term("cat", {arranged(s, sched[0], target), arranged(s, sched[1], target)});
    const auto all = pieces(s, sched);
    if (!all) return sched;
    const Machine& m = target.machine;
    if (std::any_of(s.axes.begin(), s.axes.end(), [](const Iterator& a) { return a.role == AxisRole::sequential; })) return sched;
    const Roles r = roles(*all);
    const std::string op = operation(s);
    if (target.gpu()) {
        if (op == "conv2d")
            if (auto tiled = gpu_convolution(s, r, m)) return *tiled;
        return gpu_any(s, *all);
    }
    if (op == "conv2d") return cpu_convolution(s, r, m);
    if (op == "linear") return cpu_product(r, m, "n", "co", "ci");
    if (op == "matmul") return cpu_product(r, m, "i", "j", "k");
    if (op == "max_pool" || op == "avg_pool" || op == "avg_pool_inside") return cpu_pool(s, r, m);
    if (op == "row_sum" || op == "row_mean" || op == "row_max" || op == "row_square" || op == "row_exp_sum") return cpu_rows(r, m);
    if (s.combine == Combine::assign) return cpu_elementwise(s, *all, m);
    return sched;
}

}  // namespace

Term arrange(const Term& nest, const Target& target) {
    const Term whole = complete(nest);
    const NestParts parts = nest_parts(whole);
    const Statement s = statement_of(parts.statement);
    const Term better("nest", {parts.statement, arranged(s, parts.schedule, target)});
    const Term result = parts.restore.empty() ? better : Term("restore", {Term(parts.restore), better});
    try {
        resolve(result);
        return result;
    } catch (const UserError&) {
        return whole;
    }
}

Term default_nest(const Statement& s, const Target& target) { return arrange(nest_of(s), target); }
Term default_nest(const Node& node, const Target& target) { return arrange(nest_of(node), target); }

}  // namespace loopegg
