// Which rule file a phase of a run comes from: one's own before the one that ships.
#pragma once
#include <filesystem>
#include <memory>

#include "rules/rule.hpp"

namespace loopegg {

// A rule file, read once in a process. Rules are judged when they are loaded.
std::shared_ptr<const RuleBook> read_book(const std::filesystem::path& file);

// The file of one's own where it has the phase, else the one that ships.
std::shared_ptr<const RuleBook> book_with_phase(const std::string& phase, const std::filesystem::path& own, const std::filesystem::path& shipped);

}  // namespace loopegg
