// Schedules for nests that transform tiles (statements with coefficients): every tile written out, with vectors of channels.
#pragma once
#include <vector>

#include "nest/schedule/sketch.hpp"

namespace loopegg {

// Most promising first; none for any other statement, or where channels come in no vectors.
std::vector<Term> transform_schedules(const Term& nest, const VectorMachine& machine);

}  // namespace loopegg
