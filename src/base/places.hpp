// Where the files that come with the program lie: rule files, targets, examples.
#pragma once
#include <filesystem>
#include <string_view>

namespace loopegg {

// The path of a shipped file or folder ("rules/default.rules"): below LOOPEGG_HOME if that is set, else in the installation that the
// program was started from, else in the source tree that it was built from.
std::filesystem::path shipped(std::string_view relative);

}  // namespace loopegg
