// What rules over whole networks (nest/net/net.hpp) may say: operators, guards, lists and functions.
#pragma once
#include <vector>

#include "rules/language.hpp"

namespace loopegg {

std::vector<OperatorKind> net_operator_kinds();
std::vector<GuardKind> net_guards();
std::vector<ListKind> net_lists();
std::vector<FunctionKind> net_functions();

}  // namespace loopegg
