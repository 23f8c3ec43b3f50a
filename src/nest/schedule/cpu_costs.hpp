// What the parts of a schedule cost on a processor, for the estimate of cpu_estimate.hpp.
#pragma once
#include <span>

namespace loopegg {

// All costs are in multiply-adds of a vector, unless another unit is stated.
struct CpuCosts {
    double enough_accumulators;  // so many hide the latency of a multiply-add
    double load;
    double crossing_load;   // times a load: a vector that may begin anywhere
    double fetched_ahead;   // registers for numbers that several multiply-adds share (x86)
    double memory_operand;  // times a load: a number that a multiply-add takes from memory (x86)
    double branch;          // of a loop around the innermost body
    double store;
    double scattered_store;     // a store whose lanes are no neighbours in memory
    double broken_rows;         // times a scattered store, by the length of a row: the rows of a tile are put together from such lanes
    double from_afar;           // a value that is read repeatedly and does not stay in near caches
    double near_bytes;          // what stays in near caches
    double streamed;            // an element that comes from beyond the caches of a core
    double far_bytes;           // the caches of a core
    double too_few_registers;   // a multiply-add whose values do not all stay in registers
    double windows_of_numbers;  // a multiply-add where windows in two directions share numbers
    double another_number;      // a multiply-add, for each number of its body beyond `few_numbers`: the compiler loads numbers early and spills (x86)
    double few_numbers;
    double max_for_numbers;
    double copied_by_one;  // in multiply-adds of a lane: an element of a padded input that one core copies before the others begin
    double copied_twice;   // the same where each core copies its rows and the rows around them
    double copied_near;    // the same where each core copies what it alone reads, which stays near
    double another_page;   // a step of a long sum that reads an input on another page, where caches do not fetch ahead
    double page_bytes;
    double pages_at_hand;        // a sum of more steps is long
    double long_vectors;         // each register of a vector but the first waits
    double put_together;         // times all: vectors that fill no whole number of registers are loaded and stored in parts, with shuffles
    double tested;               // a read that is tested, whether it is inside the input
    double picked_up;            // times a load: a lane is loaded by itself and put into its place
    double interleaved;          // so many vectors at a time, where the compiler makes vectors of a loop
    double left_over;            // times all: the iterations that such vectors leave over
    double start_of_cores;       // what one core could do while the cores start
    double weights_stay;         // each core goes through its own weights again and again: rarely better, seldom much worse
    double other_is_contiguous;  // what it saves that the loop without lanes walks neighbours in memory
};

// The costs by their names, for a program that fits them.
struct CpuCost {
    const char* name;
    double CpuCosts::*value;
};
std::span<const CpuCost> all_cpu_costs();

// The costs that schedules are extracted by. Costs of Arm or of x86 alone apply where the machine has or lacks lane factors.
const CpuCosts& shipped_cpu_costs();

}  // namespace loopegg
