// Scalar formulas over tensors, by LibTorch's functions, which know their own derivatives.
#pragma once
#include <functional>
#include <string>

#include <ATen/ATen.h>

#include "base/term.hpp"

namespace loopegg {

// The value of a formula of basic and element functions. `leaf` gives the operands. Leaves that are numbers take their type from `like`.
at::Tensor formula_value(const Term& formula, const at::Tensor& like, const std::function<at::Tensor(const std::string& name)>& leaf);

}  // namespace loopegg
