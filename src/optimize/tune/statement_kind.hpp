// Which statements are alike but for their numbers of channels: what is measured of one is a good guess for the others.
#pragma once
#include <string>

#include "base/term.hpp"

namespace loopegg {

// The statement without its numbers of channels.
std::string statement_kind(const Term& stmt);

}  // namespace loopegg
