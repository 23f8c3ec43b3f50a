#include "nest/schedule/gpu_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();

// Latencies are in cycles, costs in instructions.
constexpr double far_latency = 700, shared_latency = 30, add_latency = 4, barrier = 40;
constexpr double tested_copy = 14, plain_copy = 3, turn = 3;
constexpr double last_cache_gbs = 5500, begin_and_end = 1500;
// One instruction of tensor cores: the multiply-adds of a thread for each step of a sum, the cycles that it keeps its quarter of a multiprocessor busy, the
// cycles until its result is there, and the outputs of a thread that it adds to. Operands are in the registers of the whole warp, so a thread loads only a
// part of what its outputs need.
constexpr double tensor_steps = 4, tensor_issue = 8, tensor_latency = 33, tensor_outputs = 4, tensor_loads = 0.125;

struct Range {
    std::int64_t low, high;
};

// The range of an index over loops with these extents. A loop that does not move has extent 1.
Range range(const Index& i, const std::vector<std::int64_t>& extents) {
    switch (i.kind()) {
        case Index::Kind::constant: return {i.value(), i.value()};
        case Index::Kind::variable: return {0, extents[static_cast<std::size_t>(i.var())] - 1};
        case Index::Kind::add: {
            const Range a = range(i.left(), extents), b = range(i.right(), extents);
            return {a.low + b.low, a.high + b.high};
        }
        case Index::Kind::multiply: {
            const Range a = range(i.left(), extents);
            return i.value() >= 0 ? Range{a.low * i.value(), a.high * i.value()} : Range{a.high * i.value(), a.low * i.value()};
        }
        case Index::Kind::divide: {
            const Range a = range(i.left(), extents);
            return {a.low / i.value(), a.high / i.value()};
        }
        case Index::Kind::modulo: {
            const Range a = range(i.left(), extents);
            return a.low >= 0 && a.high < i.value() ? a : Range{0, i.value() - 1};
        }
    }
    return {0, 0};
}

class GpuReading {
public:
    GpuReading(const Statement& s, const LoopTree& tree) : s_(s), open_(static_cast<std::size_t>(tree.variables), 1), extents_(extents(tree)) {
        note_units(*tree.root);
        walk(*tree.root, {});
    }

    GpuShape shape;
    double serial_blocks = 0;  // multiply-adds of the parts of a cut domain so far, which run one after the other

private:
    struct Around {
        double blocks = 1, threads = 1, sums = 1, copiers = 1, inner = 1;
        double turns = 1;  // serial loops around
        std::vector<int> unrolled;
        double outputs = 1;
        bool tensor = false;
        std::vector<bool> staged;
        std::vector<std::pair<std::string, int>> thread_loops;  // threadIdx.x, .y, .z, and their variables
    };

    void note_units(const TreeNode& n) {
        if (n.kind == TreeNode::Kind::loop && n.loop == LoopKind::tensor)
            shape.tensor_depth = static_cast<double>(n.extent), shape.in_word = static_cast<double>(numbers_in_word(n.place));
        for (const Tree& c : n.children) note_units(*c);
    }

    static double threads_below(const TreeNode& n) {
        double all = n.kind == TreeNode::Kind::loop && n.loop == LoopKind::bind && n.place.starts_with("threadIdx") ? static_cast<double>(n.extent) : 1;
        double most = 1;
        for (const Tree& c : n.children) most = std::max(most, threads_below(*c));
        return all * most;
    }

    void walk(const TreeNode& n, Around a) {
        if (a.staged.empty()) a.staged.resize(s_.buffers.size());
        switch (n.kind) {
            case TreeNode::Kind::loop: {
                const auto e = static_cast<double>(n.extent);
                const bool bound = n.loop == LoopKind::bind;
                if (bound && n.place.starts_with("blockIdx"))
                    a.blocks *= e;
                else if (bound && n.place.starts_with("threadIdx")) {
                    a.threads *= e, a.thread_loops.emplace_back(n.place, n.var);
                    if (n.partial) a.sums *= e, shape.shared_bytes += 4 * n.extent * n.tile.elements();
                } else if (n.loop == LoopKind::unroll || n.loop == LoopKind::vector || n.loop == LoopKind::tensor || bound)
                    a.unrolled.push_back(n.var), a.inner *= e, a.tensor = a.tensor || n.loop == LoopKind::tensor;
                else
                    a.turns *= e * a.inner, a.inner = 1, a.unrolled.clear();
                break;
            }
            case TreeNode::Kind::stage:
                if (n.buffer == 0) {
                    a.outputs = static_cast<double>(n.tile.elements()) / std::max(1.0, threads_below(n));
                } else {
                    a.staged[static_cast<std::size_t>(n.buffer)] = true;
                    const auto elements = static_cast<double>(n.tile.elements());
                    bool padded = false;
                    for (const Access& r : s_.reads) padded = padded || (r.buffer == n.buffer && r.padded);
                    const double times = a.turns * a.inner;
                    if (shape.in_word > 1 && (n.scope == "shared" || n.scope == "ahead")) {
                        const double ahead = shape.ahead;
                        add_packed_copies(shape, elements, threads_below(n), times, times * a.sums * a.blocks,
                                          s_.buffers[static_cast<std::size_t>(n.buffer)].kind == BufferKind::weight);
                        if (n.scope == "shared") shape.ahead = ahead;
                        shape.shared_bytes += static_cast<std::int64_t>(4 * elements * a.sums / shape.in_word);
                        shape.chunks = std::max(shape.chunks, times);
                    } else if (n.scope == "shared" || n.scope == "ahead") {
                        if (n.scope == "ahead") shape.ahead += std::ceil(elements / (padded ? 1 : 4) / threads_below(n)) * (padded ? 1 : 4);
                        shape.shared_bytes += 4 * static_cast<std::int64_t>(elements * a.sums);
                        (padded ? shape.tested : shape.copied) += std::ceil(elements / (padded ? 1 : 4) / threads_below(n)) * times;
                        shape.chunks = std::max(shape.chunks, times);
                        shape.far_bytes += 4 * elements * times * a.sums * a.blocks;
                    } else {
                        shape.far_loads += elements * times, shape.far_bytes += 4 * elements * times * a.threads * a.blocks;
                    }
                }
                break;
            case TreeNode::Kind::body: return body(n, a);
            default: break;
        }
        for (const Tree& c : n.children) walk(*c, a);
    }

    void body(const TreeNode& b, const Around& a) {
        const double steps = a.turns * a.inner;
        shape.blocks = std::max(shape.blocks, a.blocks), shape.threads = std::max(shape.threads, a.threads);
        shape.outputs = std::max(shape.outputs, a.outputs), shape.sums = std::max(shape.sums, a.sums);
        shape.steps = serial_blocks + steps, serial_blocks += steps;
        shape.steps_per_turn = a.inner;
        shape.tensor = shape.tensor || a.tensor;
        for (int v : a.unrolled) open_[static_cast<std::size_t>(v)] = extents_[static_cast<std::size_t>(v)];
        double loads = 0;
        for (std::size_t r = 0; r < b.reads.size(); ++r) {
            double box = 1;
            for (const Index& i : b.reads[r].index) {
                const Range w = range(i, open_);
                box *= static_cast<double>(w.high - w.low + 1);
            }
            const bool rows = shape.tensor && s_.buffers[static_cast<std::size_t>(s_.reads[r].buffer)].kind == BufferKind::weight;
            const double one = std::min(box, a.inner) / a.inner * (rows ? rows_of_tensor_loads : 1);
            loads += one;
            // Warps share lines.
            if (!a.staged[static_cast<std::size_t>(s_.reads[r].buffer)])
                shape.far_loads += one * steps, shape.far_bytes += 4 * one * steps * a.threads * a.blocks / 8,
                    shape.far_lines += one * steps * lines(b.reads[r].index, s_.buffers[static_cast<std::size_t>(s_.reads[r].buffer)], a);
        }
        for (int v : a.unrolled) open_[static_cast<std::size_t>(v)] = 1;
        shape.loads = loads;
    }

    // How many lines the first warp of a block asks for when its threads read at `index`.
    double lines(const std::vector<Index>& index, const Buffer& buffer, const Around& a) const {
        auto loops = a.thread_loops;
        std::sort(loops.begin(), loops.end());  // x is the fastest
        std::vector<std::int64_t> values(open_.size(), 0), addresses;
        for (std::int64_t t = 0; t < std::min(warp_threads, static_cast<std::int64_t>(a.threads)); ++t) {
            std::int64_t left = t, address = 0;
            for (const auto& [place, var] : loops) {
                const std::int64_t extent = extents_[static_cast<std::size_t>(var)];
                values[static_cast<std::size_t>(var)] = left % extent, left /= extent;
            }
            for (std::size_t d = 0; d < index.size(); ++d) address = address * buffer.shape[d] + index[d].at(values);
            addresses.push_back(address);
        }
        return lines_of_warp(addresses);
    }

    static std::vector<std::int64_t> extents(const LoopTree& tree) {
        std::vector<std::int64_t> all(static_cast<std::size_t>(tree.variables), 1);
        const auto note = [&](const auto& self, const TreeNode& n) -> void {
            if (n.kind == TreeNode::Kind::loop) all[static_cast<std::size_t>(n.var)] = n.extent;
            for (const Tree& c : n.children) self(self, *c);
        };
        note(note, *tree.root);
        return all;
    }

    const Statement& s_;
    std::vector<std::int64_t> open_;
    std::vector<std::int64_t> extents_;
};

}  // namespace

double lines_of_warp(std::span<const std::int64_t> addresses) {
    constexpr std::int64_t floats_of_a_line = 32;
    std::vector<std::int64_t> lines;
    for (const std::int64_t a : addresses) lines.push_back((a >= 0 ? a : a - floats_of_a_line + 1) / floats_of_a_line);
    std::sort(lines.begin(), lines.end());
    return static_cast<double>(std::unique(lines.begin(), lines.end()) - lines.begin());
}

void add_packed_copies(GpuShape& shape, double elements, double threads, double turns, double all_turns, bool weights) {
    constexpr double item = 36;  // instructions that fetch, test and pack what a thread packs at once
    const double copies = std::ceil(elements / packed_at_once / threads);
    (weights ? shape.copied : shape.tested) += copies * turns * (weights ? 1 : item / tested_copy);
    shape.ahead += copies * packed_at_once / (weights ? shape.in_word : 1);
    shape.far_bytes += (weights ? 4 / shape.in_word : 4) * elements * all_turns;
}

double operand_bytes(const Statement& statement) {
    double bytes = 0;
    for (const Buffer& b : statement.buffers) bytes += 4 * static_cast<double>(element_count(b.shape));
    return bytes;
}

double gpu_cost(const GpuShape& s, const GpuMachine& m) {
    const double warps = std::ceil(s.threads / 32);
    const bool ahead = s.ahead > 0 && s.ahead <= static_cast<double>(s.in_word > 1 ? max_kept_packed : max_kept_ahead) && s.chunks > 1;
    const double registers = std::min(255.0, 24 + 1.3 * s.outputs + 2 * std::sqrt(s.outputs) + (s.loads > 0 ? 8 : 0) + (ahead ? s.ahead : 0));
    if (s.threads > static_cast<double>(m.block_threads) || s.shared_bytes > m.block_shared_bytes || s.outputs > 160) return impossible;
    const double at_once =
        std::floor(std::min({static_cast<double>(m.threads) / (32 * warps), static_cast<double>(m.registers) / (32 * warps * registers),
                             s.shared_bytes > 0 ? static_cast<double>(m.shared_bytes) / (static_cast<double>(s.shared_bytes) + 1024) : 32.0, 32.0}));
    if (at_once < 1) return impossible;
    const double of_a_core = std::ceil(s.blocks / m.cores);
    const double together = std::min(at_once, of_a_core), waves = std::ceil(of_a_core / at_once);
    // The instructions that a thread issues.
    const double loads = s.loads * (s.tensor ? tensor_loads / s.in_word : 1);
    const double multiply = s.steps * ((s.tensor ? tensor_issue / (tensor_steps * s.tensor_depth) : 1) + turn / std::max(1.0, s.steps_per_turn)),
                 load = s.steps * loads + s.far_loads * 2;
    const double instructions = multiply + load + s.tested * tested_copy + s.copied * plain_copy + s.outputs * 6 + 60;
    const double issue = of_a_core * warps * instructions / (m.lanes / 32.0);
    const double shared_memory = of_a_core * warps * s.steps * loads;  // one warp's load a cycle
    const double lines = of_a_core * warps * s.far_lines;              // one line a cycle
    // The cycles that a thread waits, when nothing else runs.
    const double adds = s.tensor
                            ? s.steps / (tensor_steps * s.tensor_depth) * std::max(tensor_issue, tensor_latency / std::max(1.0, s.outputs / tensor_outputs))
                            : s.steps * std::max(1.0, add_latency / std::max(1.0, s.outputs));
    const double chain = adds + s.steps / std::max(1.0, s.steps_per_turn) * shared_latency * 0.7;
    // For a tile that is staged ahead a thread waits once, and less long. Otherwise a thread waits for each element that it copies, because it writes one
    // element before it asks for the next.
    const double waits =
        ahead ? std::max(0.15 * far_latency, far_latency - (chain + load) / s.chunks) : far_latency * std::max(1.0, (s.tested + s.copied) / s.chunks);
    const double fill = (ahead ? far_latency : waits) + (s.chunks - 1) * waits + s.chunks * 2 * barrier +
                        s.far_loads / std::max(1.0, std::min(s.steps_per_turn, 16.0)) * far_latency * 0.5;
    const double alone = chain + fill + load + begin_and_end * (s.sums > 1 ? 1.2 : 1);
    const double cycles =
        std::max({issue + begin_and_end, shared_memory + begin_and_end, lines + begin_and_end, waves * alone + (together > 1 ? 0.2 * issue : 0)}) +
        0.15 * issue;
    const double memory = std::max(s.least_bytes / m.memory_gbs, s.far_bytes / (last_cache_gbs * m.cores / 132.0)) * 1e-3;
    return std::max(cycles / m.ghz * 1e-3, memory) + 0.2 * memory;
}

double gpu_cost(const Term& nest, const GpuMachine& machine) {
    try {
        const Term whole = complete(nest);
        const Statement s = statement_of(nest_parts(whole).statement);
        const LoopTree tree = resolve(whole);
        GpuReading reading(s, tree);
        if (reading.shape.threads * reading.shape.blocks < 2 && s.instances() > 64) return impossible;
        reading.shape.least_bytes = operand_bytes(s);
        return gpu_cost(reading.shape, machine);
    } catch (const UserError&) {
        return impossible;
    }
}

}  // namespace loopegg
