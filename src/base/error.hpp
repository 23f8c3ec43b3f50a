// What can go wrong, as data: whose mistake it is, where it is, and what would have been right.
#pragma once
#include <exception>
#include <source_location>
#include <string>
#include <vector>

#include "base/source.hpp"

namespace loopegg {

// One complaint. describe() puts it into words for a person when it is shown.
struct Diagnostic {
    std::string message;  // what is wrong and what was expected: "unknown operator 'con2d'"
    Position where{};     // may be unknown
    std::string hint{};   // "did you mean 'conv2d'?"
};

// "file:line:column: error: message", the line with a caret, and the hint.
std::string describe(const Diagnostic& d);

// The process exit codes of every command.
enum class ExitCode { done = 0, failed = 1, usage = 2, fault = 70 };

// The user's input or machine does not allow what was asked: exit code 1.
class UserError : public std::exception {
public:
    explicit UserError(Diagnostic d) : UserError(std::vector{std::move(d)}) {}
    explicit UserError(std::string message) : UserError(Diagnostic{std::move(message)}) {}
    explicit UserError(std::vector<Diagnostic> all);
    const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
    const char* what() const noexcept override { return text_.c_str(); }

private:
    std::vector<Diagnostic> diagnostics_;
    std::string text_;
};

// The command was typed wrongly: exit code 2.
class UsageError : public UserError {
public:
    using UserError::UserError;
};

// Our own mistake: exit code 70. The message always says where in the code.
class InternalFault : public std::exception {
public:
    explicit InternalFault(std::string message, std::source_location at = std::source_location::current());
    const char* what() const noexcept override { return text_.c_str(); }

private:
    std::string text_;
};

// Checks what must be true whatever the user gave us.
inline void require(bool condition, const char* message, std::source_location at = std::source_location::current()) {
    if (!condition) throw InternalFault(message, at);
}

}  // namespace loopegg
