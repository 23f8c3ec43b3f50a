// Turns what a board says about itself into the target that code for the board is compiled for.
#pragma once
#include <nlohmann/json.hpp>

#include "backends/target/machine_facts.hpp"

namespace loopegg {

// The members "tvm" and "machine" of a target's file. Throws UserError for an architecture that loopegg does not compile for.
nlohmann::json target_of_board(const MachineFacts& facts);

}  // namespace loopegg
