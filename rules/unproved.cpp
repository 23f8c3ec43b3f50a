#include "rules/unproved.hpp"

#include <atomic>
#include <mutex>
#include <set>

namespace loopegg {
namespace {

std::atomic<bool> admitted{false};
std::mutex guarding;
std::set<std::string>& noted_names() {
    static std::set<std::string> all;
    return all;
}

}  // namespace

void admit_unproved_rules() { admitted = true; }
bool admits_unproved() { return admitted; }

void note_unproved_rule(const std::string& name) {
    const std::lock_guard lock(guarding);
    noted_names().insert(name);
}

std::vector<std::string> unproved_rules_in_use() {
    const std::lock_guard lock(guarding);
    return {noted_names().begin(), noted_names().end()};
}

bool uses_unproved_rules() { return !unproved_rules_in_use().empty(); }

}  // namespace loopegg
