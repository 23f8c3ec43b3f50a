// Other programs, run and waited for.
#pragma once
#include <sys/types.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loopegg {

bool program_exists(const std::string& name);  // on the PATH

// Starts a program without a shell. Each pair of `ends` is a descriptor of this process and the number that the program sees it under.
// Returns 0, or the number of the error.
int spawn_program(std::vector<std::string> words, std::initializer_list<std::pair<int, int>> ends, pid_t& child);

// Runs a program without a shell. When the program fails, throws UserError with `doing` and the end of what the program said.
std::string run_or_throw(const std::vector<std::string>& words, const std::string& doing);

// What a program made of an input. The program may use `seconds` of processor time, and twenty times as many by the wall clock. `ended` is the exit code
// of the program, 128 plus the signal that ended it, or -1 where the program could not be run.
struct Filtered {
    int ended;
    bool too_long;
    std::string output, errors;
};
Filtered run_filter(const std::vector<std::string>& words, std::string_view input, double seconds);

}  // namespace loopegg
