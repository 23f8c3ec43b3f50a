// Makes a nest that shows something wrong as small as it can be while it still does: fewer loops, smaller extents, plainer loops.
#pragma once
#include <functional>
#include <string>

#include "base/term.hpp"

namespace loopegg {

// What is wrong with a nest, "" for nothing. May throw UserError for what is no nest; that is nothing.
using Complaint = std::function<std::string(const Term& nest)>;

// The smallest nest found that gets the same complaint as `nest` does.
Term shrink_nest(const Term& nest, const Complaint& complaint);

}  // namespace loopegg
