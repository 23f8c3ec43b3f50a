// One instance of a rule's left side: a small whole nest, drawn at random, that contains the left side.
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

// Draws an instance over the statement, which is given as text. Gives none when the pattern cannot be drawn over that statement. Throws UserError when the
// drawn axes do not fit together.
std::optional<NestInstance> draw_instance(const Term& pattern, const char* statement, std::mt19937_64& random);

}  // namespace loopegg
