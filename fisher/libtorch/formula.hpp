// Scalar formulas over tensors: LibTorch's functions, which know their own derivatives.
#pragma once
#include <functional>
#include <string>

#include <ATen/ATen.h>

#include "base/term.hpp"

namespace loopegg {

// What a formula of the basic and the element functions gives; `leaf` knows the operands. Leaves that are numbers take their type from `like`.
at::Tensor formula_value(const Term& formula, const at::Tensor& like, const std::function<at::Tensor(const std::string& name)>& leaf);

}  // namespace loopegg
