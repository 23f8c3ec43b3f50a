#include "nest/schedule/cpu_costs.hpp"

#include <iterator>

namespace loopegg {
namespace {

// Most of these were fitted by eye to 1,100 tilings of ten convolutions on a Neoverse V1. The others were chosen by timing nests on a Xeon with AVX-512
// (experiments/schedules.md). The first schedule hardly changes when one constant is halved or doubled.
constexpr CpuCosts shipped{
    .enough_accumulators = 8,
    .load = 1.5,
    .crossing_load = 1.3,
    .fetched_ahead = 4,
    .memory_operand = 0.25,
    .branch = 1,
    .store = 2,
    .scattered_store = 6,
    .broken_rows = 4,
    .from_afar = 1,
    .near_bytes = 96 * 1024,
    .streamed = 8,
    .far_bytes = 1 << 20,
    .too_few_registers = 1,
    .windows_of_numbers = 0.5,
    .another_number = 0.004,
    .few_numbers = 64,
    .max_for_numbers = 0.6,
    .copied_by_one = 35,
    .copied_twice = 17,
    .copied_near = 1.2,
    .another_page = 14,
    .page_bytes = 4096,
    .pages_at_hand = 64,
    .long_vectors = 0.5,
    .put_together = 4,
    .tested = 1,
    .picked_up = 2,
    .interleaved = 4,
    .left_over = 1.05,
    .start_of_cores = 10'000,
    .weights_stay = 0.005,
    .other_is_contiguous = 0.01,
};

constexpr CpuCost by_name[] = {
    {"enough_accumulators", &CpuCosts::enough_accumulators},
    {"load", &CpuCosts::load},
    {"crossing_load", &CpuCosts::crossing_load},
    {"fetched_ahead", &CpuCosts::fetched_ahead},
    {"memory_operand", &CpuCosts::memory_operand},
    {"branch", &CpuCosts::branch},
    {"store", &CpuCosts::store},
    {"scattered_store", &CpuCosts::scattered_store},
    {"broken_rows", &CpuCosts::broken_rows},
    {"from_afar", &CpuCosts::from_afar},
    {"near_bytes", &CpuCosts::near_bytes},
    {"streamed", &CpuCosts::streamed},
    {"far_bytes", &CpuCosts::far_bytes},
    {"too_few_registers", &CpuCosts::too_few_registers},
    {"windows_of_numbers", &CpuCosts::windows_of_numbers},
    {"another_number", &CpuCosts::another_number},
    {"few_numbers", &CpuCosts::few_numbers},
    {"max_for_numbers", &CpuCosts::max_for_numbers},
    {"copied_by_one", &CpuCosts::copied_by_one},
    {"copied_twice", &CpuCosts::copied_twice},
    {"copied_near", &CpuCosts::copied_near},
    {"another_page", &CpuCosts::another_page},
    {"page_bytes", &CpuCosts::page_bytes},
    {"pages_at_hand", &CpuCosts::pages_at_hand},
    {"long_vectors", &CpuCosts::long_vectors},
    {"put_together", &CpuCosts::put_together},
    {"tested", &CpuCosts::tested},
    {"picked_up", &CpuCosts::picked_up},
    {"interleaved", &CpuCosts::interleaved},
    {"left_over", &CpuCosts::left_over},
    {"start_of_cores", &CpuCosts::start_of_cores},
    {"weights_stay", &CpuCosts::weights_stay},
    {"other_is_contiguous", &CpuCosts::other_is_contiguous},
};
static_assert(sizeof(CpuCosts) == std::size(by_name) * sizeof(double), "a cost has no name");

}  // namespace

std::span<const CpuCost> all_cpu_costs() { return by_name; }

const CpuCosts& shipped_cpu_costs() { return shipped; }

}  // namespace loopegg
