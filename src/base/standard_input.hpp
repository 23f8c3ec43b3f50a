// All of standard input at once: std::cin would give it byte by byte, which costs seconds for the weights of one network.
#pragma once
#include <string>

namespace loopegg {

// Throws UserError where standard input cannot be read.
std::string read_standard_input();

}  // namespace loopegg
