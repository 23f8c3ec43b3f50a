// Numbers with fewer digits than float32, which a machine may multiply faster, and which schedules multiply such numbers.
//
// TF32 is float32 with 10 bits behind the point instead of 23: (bind tensor.tf32 AXIS SCHED) rounds both operands of each product to the nearest
// such number, ties away from zero. Sums stay float32. Small whole numbers are TF32 numbers, so such a schedule is exact on them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

constexpr std::string_view tensor_place = "tensor.";  // (bind tensor.tf32 ...)

bool is_tensor_place(const Term& place);

const std::vector<std::string>& rounding_names();  // what --allow takes

float rounded_to_tf32(float value);  // infinities and NaN stay

// Whether a loop of a SCHED or NEST rounds operands.
bool rounds_operands(const Term& schedule);

// The same NEST with operands rounded, for whatever machine its loops were made: one of its serial loops becomes (bind tensor.tf32 ...). A NEST without
// serial loops stays as it is.
Term with_rounded_operands(const Term& nest);

}  // namespace loopegg
