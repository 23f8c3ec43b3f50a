#include "backends/target/target_rules.hpp"

#include "base/places.hpp"

namespace loopegg {

GpuMachine gpu_machine(const Target& target) {
    const Machine& of = target.machine;
    GpuMachine m;
    m.cores = of.cores, m.lanes = of.lanes * of.fma_per_cycle, m.ghz = of.ghz, m.memory_gbs = of.memory_gbs;
    if (of.threads_per_core > 0) m.threads = of.threads_per_core;
    if (of.registers_per_core > 0) m.registers = of.registers_per_core;
    if (of.shared_kb_per_core > 0) m.shared_bytes = static_cast<std::int64_t>(of.shared_kb_per_core * 1024);
    m.block_shared_bytes = target.tvm.value("max_shared_memory_per_block", m.block_shared_bytes);
    m.block_threads = target.tvm.value("max_threads_per_block", m.block_threads);
    m.units = allowed_units(target);
    return m;
}

VectorMachine vector_machine(const Target& target) {
    // x86 below AVX-512 has 16 vector registers; AVX-512 and Arm have 32.
    const bool x86 = target.architecture() == "x86_64", few = x86 && target.machine.lanes <= 8;
    return {target.machine.cores, target.machine.lanes, few ? 16 : 32, !x86, allowed_units(target)};
}

std::shared_ptr<const ScheduleRules> schedule_rules(const Target& target) {
    if (target.gpu()) return ScheduleRules::of(target.rules, shipped("rules/tune-gpu.rules"), gpu_machine(target));
    return ScheduleRules::of(target.rules, shipped("rules/tune-cpu.rules"), vector_machine(target));
}

std::shared_ptr<const FusionRules> fusion_rules(const Target& target) { return FusionRules::of(target.rules, shipped("rules/fusion.rules")); }

}  // namespace loopegg
