// Default schedules for GPUs.
#include <algorithm>

#include "backends/lower/schedule_pieces.hpp"

namespace loopegg {
namespace {

// What a block computes (channels x rows x columns), what of it a thread does, and how many input channels pass through shared memory at a time.
struct BlockTile {
    std::int64_t channels, rows, columns, own_channels, own_rows, chunk;
};

// A multiprocessor without a block is idle and one with few threads waits for memory. So where outputs are few (late layers, parts of outputs), blocks become
// smaller until there is one for each, and a thread has one output; then longer chunks keep more loads in flight. Not where the nest has several
// parts (`alone` is false): blocks do these one after the other, and a part with fewer blocks than the widest does without shared tiles (lower_nest.cpp).
std::optional<BlockTile> block_tile(const Statement& s, const Roles& r, const Machine& m, bool alone) {
    const Piece n = r.get("n"), g = r.get("g"), co = r.get("co"), ci = r.get("ci"), oh = r.get("oh"), ow = r.get("ow"), kh = r.get("kh"), kw = r.get("kw");
    BlockTile t{largest_divisor(co.extent, 32), 1, largest_divisor(ow.extent, 16), 1, 1, 1};
    t.rows = largest_divisor(oh.extent, std::max<std::int64_t>(1, 64 / t.columns));
    std::int64_t outside = n.extent * g.extent * (ow.extent / t.columns);
    for (const Piece& p : r.outer) outside *= p.extent;
    const auto blocks = [&] { return outside * (co.extent / t.channels) * (oh.extent / t.rows); };
    const auto shrink = [&](std::int64_t& size, const Piece& of, std::int64_t least, std::int64_t wanted) {
        while (size > least && blocks() < wanted) size = largest_divisor(of.extent, size - 1);
    };
    shrink(t.channels, co, 8, 2 * m.cores);
    if (alone) shrink(t.rows, oh, 1, m.cores), shrink(t.channels, co, 4, m.cores);
    const auto threads = [&] { return t.channels * t.rows * t.columns / (t.own_channels * t.own_rows); };
    constexpr std::int64_t enough = 128;
    t.own_channels = largest_divisor(t.channels, t.channels >= 16 ? 4 : 2), t.own_rows = largest_divisor(t.rows, 2);
    if (alone && threads() < enough) t.own_rows = 1;
    while (alone && t.own_channels > 1 && threads() < enough) t.own_channels = largest_divisor(t.channels, t.own_channels - 1);
    const auto shared_bytes = [&] {
        const std::int64_t input = ((t.rows - 1) * number(s, 8) + kh.extent) * ((t.columns - 1) * number(s, 9) + kw.extent);
        return 4 * t.chunk * (input + t.channels * kh.extent * kw.extent);
    };
    const bool point = kh.extent * kw.extent == 1;
    t.chunk = largest_divisor(ci.extent, (alone && blocks() <= 2 * m.cores ? 16 : 8) * (point ? 2 : 1));
    while (t.chunk > 1 && shared_bytes() > 40000) t.chunk = largest_divisor(ci.extent, t.chunk - 1);
    if (shared_bytes() > 40000) return {};
    return t;
}

// Chunks of the input and the weights pass through shared memory, all threads copying together.
std::optional<Term> gpu_convolution(const Statement& s, const Roles& r, const Machine& m, bool alone) {
    const Piece n = r.get("n"), g = r.get("g"), co = r.get("co"), ci = r.get("ci"), oh = r.get("oh"), ow = r.get("ow"), kh = r.get("kh"), kw = r.get("kw");
    if (co.extent < 8 || ci.extent < 4 || !s.buffers[0].blocking.empty()) return {};
    const auto tile = block_tile(s, r, m, alone);
    if (!tile) return {};
    const auto [channels, rows, columns, own_channels, own_rows, chunk] = *tile;
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

// Blocks over output tiles, threads over their elements, a few outputs of a thread in registers; where outputs are few, one of each, in smaller blocks.
Term gpu_any(const Statement& s, const std::vector<Piece>& all, const Machine& m) {
    std::vector<Piece> outputs, sums;
    std::int64_t elements = 1;
    for (const Piece& p : all) {
        (p.output ? outputs : sums).push_back(p);
        if (p.output) elements *= p.extent;
    }
    const bool many = elements >= 4 * 128 * m.cores;
    const std::int64_t block_threads = many ? 128 : std::clamp<std::int64_t>(elements / m.cores, 32, 128);
    LoopList loops;
    std::optional<Term> unrolled;
    for (Piece& p : outputs)   // output channels share the input that a thread reads; a restricted axis may come in several pieces
        if (many && !unrolled && p.iterator == "co" && p.extent % 4 == 0 && s.combine != Combine::assign) {
            const Cut c = cut(p, 4);
            unrolled = c.inner;
            if (c.outer) p = {*c.outer, c.blocks, p.iterator, true};
            else p.extent = 1;
        }
    std::erase_if(outputs, [](const Piece& p) { return p.extent == 1; });
    std::vector<Term> block, thread;
    std::int64_t threads = 1;
    for (auto it = outputs.rbegin(); it != outputs.rend(); ++it) {
        const std::int64_t k = largest_divisor(it->extent, std::max<std::int64_t>(1, block_threads / threads));
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

Term gpu_schedule(const Statement& s, const std::vector<Piece>& all, const Machine& m, bool alone) {
    if (operation(s) == "conv2d")
        if (auto tiled = gpu_convolution(s, roles(all), m, alone)) return *tiled;
    return gpu_any(s, all, m);
}

}  // namespace loopegg
