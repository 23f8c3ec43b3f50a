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

// Starts a program with no shell; `ends` are pairs of a descriptor here and the one that it is there. 0, or the number of the error.
int spawn_program(std::vector<std::string> words, std::initializer_list<std::pair<int, int>> ends, pid_t& child);

// Runs a program without a shell. When the program fails, throws UserError with `doing` and the end of what the program said.
std::string run_or_throw(const std::vector<std::string>& words, const std::string& doing);

// What a program made of an input within `seconds` of a processor, or twenty times as many by the wall clock. `ended` is its exit code, 128 plus the
// signal that ended it, or -1 where it could not be run.
struct Filtered {
    int ended;
    bool too_long;
    std::string output, errors;
};
Filtered run_filter(const std::vector<std::string>& words, std::string_view input, double seconds);

}  // namespace loopegg
