// Makes a nest that shows a fault as small as it can be while it still shows that fault: fewer loops, smaller extents, plainer loops.
#pragma once
#include <functional>
#include <string>

#include "base/term.hpp"

namespace loopegg {

// What is wrong with a nest, "" for nothing. The function may throw UserError for a term that is no nest, which counts as nothing wrong.
using Complaint = std::function<std::string(const Term& nest)>;

// The smallest nest found that gets the same complaint as `nest` does.
Term shrink_nest(const Term& nest, const Complaint& complaint);

}  // namespace loopegg
