#include "backends/measure/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "backends/kernel/kernel.hpp"
#include "backends/lower/lower_nest.hpp"
#include "backends/target/target_rules.hpp"
#include "nest/schedule/unit_estimate.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

// What the loops of a tree say about how well a machine is used.
struct Facts {
    double instances = 0;
    double parallel = 1, lanes = 1, grid = 1, block = 1;  // the maximum over all paths
    double registers = 0;                                 // outputs that the innermost stage keeps in registers
    double loads = 0;                                     // elements that bodies read from memory, less those that registers reuse
};

void gather(const Tree& n, const Statement& s, double around, Facts here, double staged, Facts& all) {
    switch (n->kind) {
        case TreeNode::Kind::loop:
            if (n->loop == LoopKind::parallel) here.parallel *= static_cast<double>(n->extent);
            if (n->loop == LoopKind::vector) here.lanes = std::max(here.lanes, static_cast<double>(n->extent));
            if (n->loop == LoopKind::bind) (n->place.starts_with("blockIdx") ? here.grid : here.block) *= static_cast<double>(n->extent);
            gather(n->children[0], s, around * static_cast<double>(n->extent), here, staged, all);
            return;
        case TreeNode::Kind::stage:
            if (n->buffer == 0) {
                staged = 1;
                for (const Tile::Step& step : n->tile.steps) staged *= static_cast<double>(step.extent);
            }
            gather(n->children[0], s, around, here, staged, all);
            return;
        case TreeNode::Kind::body:
            all.instances += around;
            all.parallel = std::max(all.parallel, here.parallel), all.lanes = std::max(all.lanes, here.lanes);
            all.grid = std::max(all.grid, here.grid), all.block = std::max(all.block, here.block);
            all.registers = std::max(all.registers, staged);
            // With r outputs in registers, each operand is read about sqrt(r) times less. Without, the output itself moves too.
            all.loads += staged > 0 ? around * static_cast<double>(s.reads.size()) / std::max(1.0, std::sqrt(staged))
                                    : around * (static_cast<double>(s.reads.size()) + 2);
            return;
        default:
            for (const Tree& c : n->children) gather(c, s, around, here, staged, all);
    }
}

// What a nest takes whose products a unit of the target multiplies; none for other nests. The estimate of schedules counts cycles in which a core could begin
// two vectors of multiply-adds.
std::optional<double> unit_ms(const Term& nest, const Statement& s, const Target& target) {
    const Term& schedule = nest_parts(nest).schedule;
    if (target.gpu() || !rounds_operands(schedule)) return {};
    VectorMachine machine = vector_machine(target);
    machine.units = target.machine.units;
    const NaiveLoops loops = naive_loops(s, nest_parts(nest_of(s)).schedule);
    const auto shape = unit_shape(loops, schedule);
    const MatrixUnit* unit = shape ? unit_for(*shape, machine.units) : nullptr;
    if (!unit) return {};
    double instances = 1;
    for (const NaiveLoop& l : loops.loops) instances *= static_cast<double>(l.extent);
    return unit_cost(loops, *shape, *unit, machine) * instances / (2.0 * machine.lanes * machine.cores * target.machine.ghz * 1e6);
}

}  // namespace

Latency estimate_latency(const Term& nest, const Target& target) {
    const Term whole = complete(nest);
    if (target.gpu()) {  // the estimate by which its schedules are chosen
        const double us = gpu_cost(whole, gpu_machine(target));
        if (std::isfinite(us)) return {(us + target.machine.launch_us) * 1e-3, 0, 0, target.name, false, false};
    }
    const Statement s = statement_of(nest_parts(whole).statement);
    const LoopTree tree = resolve(whole);
    Facts f;
    gather(tree.root, s, 1, {}, 0, f);
    double bytes = 0;  // every buffer once
    for (std::size_t b = 0; b < s.buffers.size(); ++b) {
        const auto readers = weight_readers(s, tree, static_cast<int>(b));
        double n = 1;
        for (std::int64_t d : s.buffers[b].shape) n *= static_cast<double>(d);
        if (!readers.empty()) {
            n = 0;
            for (const WeightReader& r : readers) n += static_cast<double>(r.elements());
        }
        bytes += 4 * n;
    }
    const Machine& m = target.machine;
    const double memory_ms = bytes / m.memory_gbs * 1e-6;
    double compute_share, cores_used;
    if (target.gpu()) {
        const double threads = f.grid * f.block;
        cores_used = std::min<double>(m.cores, f.grid);
        const double resident = std::min<double>(m.threads_per_core ? m.threads_per_core : 2048, f.block * std::max(1.0, std::floor(f.grid / m.cores)));
        // A multiprocessor hides its latencies with about a quarter of its threads, or with fewer threads that keep several outputs each.
        const double hidden = std::min(1.0, resident * std::max(1.0, std::sqrt(std::max(1.0, f.registers))) / 512.0);
        compute_share = cores_used / m.cores * hidden * (threads < 32 ? threads / 32 : 1);
    } else {
        cores_used = std::min<double>(m.cores, f.parallel);
        compute_share = cores_used / m.cores * std::min(1.0, f.lanes / m.lanes) * std::min(1.0, std::max(1.0, f.registers / std::max(1.0, f.lanes)) / 8.0);
    }
    if (const auto ms = unit_ms(whole, s, target)) return {std::max(*ms, memory_ms) + m.launch_us * 1e-3, 0, 0, target.name, false, false};
    const double flops = (s.combine == Combine::sum && s.reads.size() > 1 ? 2 : 1) * f.instances;
    const double compute_ms = flops / (m.peak_gflops() * std::max(1e-3, compute_share)) * 1e-6;
    // The first cache delivers about two operands per lane and cycle.
    const double cache_gbs = 8.0 * m.lanes * m.ghz * std::max(1.0, cores_used);
    const double cache_ms = 4 * f.loads / cache_gbs * 1e-6;
    return {std::max({compute_ms, memory_ms, cache_ms}) + m.launch_us * 1e-3, 0, 0, target.name, false, false};
}

}  // namespace loopegg
