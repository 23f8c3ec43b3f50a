// Other programs, run and waited for.
#pragma once
#include <string>
#include <vector>

namespace loopegg {

bool program_exists(const std::string& name);   // on the PATH

// Runs a program with no shell. Throws UserError with the end of what it said when it fails; `doing` is for the words.
std::string run_or_throw(const std::vector<std::string>& words, const std::string& doing);

}  // namespace loopegg
