// One instance of a rule's left side: a small whole nest that contains it, drawn at random.
#pragma once
#include <optional>
#include <random>
#include <string>

#include "base/term.hpp"

namespace loopegg {

struct NestInstance {
    Term nest;
    std::string roles;  // which of the pattern's axes are free to run in any order (p) and which are not (o): "po"
};

// Over the statement, given as text. None when the pattern cannot be drawn over it; UserError when the axes drawn do not fit together.
std::optional<NestInstance> draw_instance(const Term& pattern, const char* statement, std::mt19937_64& random);

}  // namespace loopegg
