// Numbers with fewer digits than float32, which a machine may multiply faster, and which schedules multiply such numbers.
//
// (bind tensor.KIND AXIS SCHED) rounds both operands of each product to the nearest number of that kind. Sums stay float32. Small whole numbers are numbers of
// every kind, so such a schedule is exact on them.
//   tf32  10 bits behind the point instead of 23; ties go away from zero
//   int8  whole numbers from -127 to 127 times a scale that a network measures for the operand (term/int8_scales.hpp); ties go to the even neighbour. Four fit
//         into one word, and their sums are 32-bit whole numbers.
//   bf16  7 bits behind the point; ties go to the even neighbour. Two such numbers fit into one 32-bit word.
//   fp16  10 bits behind the point, and sizes from 2^-24 to 65,504: larger numbers become infinite. Ties and words as for bf16.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

constexpr std::string_view tensor_place = "tensor.";  // (bind tensor.tf32 ...)

bool is_tensor_place(const Term& place);

const std::vector<std::string>& rounding_names();  // what --allow takes, sorted

// To the nearest number of that kind; infinities and NaN stay.
float rounded_to_tf32(float value);
float rounded_to_bf16(float value);
float rounded_to_fp16(float value);
std::uint16_t fp16_bits(float value);  // of the nearest such number
float from_fp16_bits(std::uint16_t bits);
float rounded_to_int8(float value);
std::int64_t numbers_in_word(const std::string& kind);   // how many of them share 32 bits
float rounded_to(const std::string& kind, float value);  // of rounding_names()

// The kinds of numbers that loops of a SCHED or NEST round operands to.
std::set<std::string> roundings_of(const Term& schedule);
bool rounds_operands(const Term& schedule);

// The same NEST with operands rounded, for whatever machine its loops were made: one of its serial loops becomes (bind tensor.KIND ...). A NEST without
// serial loops stays as it is.
Term with_rounded_operands(const Term& nest, const std::string& kind);

}  // namespace loopegg
