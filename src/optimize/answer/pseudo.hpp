// A nest's loops, as people read them.
#pragma once
#include <string>

#include "base/term.hpp"

namespace loopegg {

std::string pseudo(const Term& nest);

}  // namespace loopegg
