// Which rule file a phase of a run comes from: the user's file before the shipped one.
#pragma once
#include <filesystem>
#include <memory>

#include "rules/rule.hpp"

namespace loopegg {

// A rule file, read once in a process. Rules are judged when they are loaded.
std::shared_ptr<const RuleBook> read_book(const std::filesystem::path& file);

// The user's file where it has the phase, else the shipped file.
std::shared_ptr<const RuleBook> book_with_phase(const std::string& phase, const std::filesystem::path& own, const std::filesystem::path& shipped);

}  // namespace loopegg
