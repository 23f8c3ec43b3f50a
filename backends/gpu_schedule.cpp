// Default schedules for GPUs.
#include <algorithm>

#include "backends/schedule_pieces.hpp"

namespace loopegg {
namespace {

// A block computes channels x rows x columns, its threads a few of each; chunks of the input and the weights pass through
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
    LoopList loops;
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

// Blocks over output tiles, threads over their elements, a few outputs of a thread in registers.
Term gpu_any(const Statement& s, const std::vector<Piece>& all) {
    std::vector<Piece> outputs, sums;
    for (const Piece& p : all) (p.output ? outputs : sums).push_back(p);
    LoopList loops;
    std::optional<Term> unrolled;
    for (Piece& p : outputs)   // output channels share the input that a thread reads; a restricted axis may come in several pieces
        if (!unrolled && p.iterator == "co" && p.extent % 4 == 0 && s.combine != Combine::assign) {
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

}  // namespace

Term gpu_schedule(const Statement& s, const std::vector<Piece>& all, const Machine& m) {
    if (operation(s) == "conv2d")
        if (auto tiled = gpu_convolution(s, roles(all), m)) return *tiled;
    return gpu_any(s, all);
}

}  // namespace loopegg
