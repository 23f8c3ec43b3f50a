// Errors of the system in words that a person can act on: the path, the cause, and what to do about it.
#pragma once
#include <filesystem>
#include <string>

#include "base/error.hpp"

namespace loopegg {

// "cannot write 'out/x': No space left on device", with a hint that fits the cause.
Diagnostic system_diagnostic(const std::string& doing, const std::filesystem::path& path, int error);
[[noreturn]] void fail_system(const std::string& doing, const std::filesystem::path& path, int error);

// Turns an error that the standard library threw (filesystem_error, system_error) into a UserError.
UserError as_user_error(const std::system_error& e);

}  // namespace loopegg
