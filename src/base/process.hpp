// Other programs, run and waited for.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace loopegg {

bool program_exists(const std::string& name);   // on the PATH

// Runs a program with no shell. Throws UserError with the end of what it said when it fails; `doing` is for the words.
std::string run_or_throw(const std::vector<std::string>& words, const std::string& doing);

// What a program made of an input, with a limit of time. `ended` is its exit code, 128 and the signal that ended it, or -1 where it could not be run.
struct Filtered {
    int ended;
    bool too_long;
    std::string output, errors;
};
Filtered run_filter(const std::vector<std::string>& words, std::string_view input, double seconds);

}  // namespace loopegg
