#include "backends/target/graphics.hpp"

#include "base/places.hpp"

namespace loopegg {

GpuMachine graphics(const Target& target) {
    const Machine& of = target.machine;
    GpuMachine m;
    m.cores = of.cores, m.lanes = of.lanes * of.fma_per_cycle, m.ghz = of.ghz, m.memory_gbs = of.memory_gbs;
    if (of.threads_per_core > 0) m.threads = of.threads_per_core;
    if (of.registers_per_core > 0) m.registers = of.registers_per_core;
    if (of.shared_kb_per_core > 0) m.shared_bytes = static_cast<std::int64_t>(of.shared_kb_per_core * 1024);
    m.block_shared_bytes = target.tvm.value("max_shared_memory_per_block", m.block_shared_bytes);
    m.block_threads = target.tvm.value("max_threads_per_block", m.block_threads);
    return m;
}

std::shared_ptr<const GpuRules> gpu_rules(const Target& target) { return GpuRules::of(shipped("rules/tune-gpu.rules"), graphics(target)); }

}  // namespace loopegg
