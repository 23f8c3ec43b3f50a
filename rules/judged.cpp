#include "rules/judged.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/number.hpp"
#include "base/places.hpp"

namespace loopegg {
namespace {

using Verdicts = std::unordered_map<std::string, RuleVerdict>;

constexpr const char* in_between = " | ";

// "listed sums rounds:tf32 ?k<=32".
std::string in_file(const RuleVerdict& v) {
    std::string text = to_string(v.proof);
    if (v.reorders_sums) text += " sums";
    for (const std::string& kind : v.roundings) text += " rounds:" + kind;
    for (const auto& [variable, most] : v.most) text += fmt::format(" {}<={}", variable, most);
    if (!v.why.empty()) text += ": " + v.why;
    return text;
}

RuleVerdict from_file(const std::string& text) {
    RuleVerdict v;
    const std::size_t colon = text.find(": ");
    if (colon != text.npos) v.why = text.substr(colon + 2);
    std::istringstream words(text.substr(0, colon));
    std::string word;
    words >> word;
    v.proof = proof_named(word);
    while (words >> word) {
        const std::size_t bound = word.find("<=");
        if (word == "sums") v.reorders_sums = true;
        if (word.starts_with("rounds:")) v.roundings.insert(word.substr(7));
        if (bound != word.npos) v.most[word.substr(0, bound)] = number_in<std::int64_t>(word.substr(bound + 2)).value_or(0);
    }
    return v;
}

Verdicts read_verdicts() {
    Verdicts all;
    try {
        std::istringstream lines(read_file(shipped("rules/judged.txt")));
        for (std::string line; std::getline(lines, line);)
            if (const std::size_t at = line.find(in_between); at != line.npos)
                all.emplace(line.substr(at + std::string(in_between).size()), from_file(line.substr(0, at)));
    } catch (const UserError&) {  // an installation without the list judges every rule
    }
    return all;
}

std::atomic<bool> admitted{false};
std::mutex guarding;
std::set<std::string>& noted_names() {
    static std::set<std::string> all;
    return all;
}

}  // namespace

std::string rule_hash(const Rule& rule) { return hash_of(rule.text).hex(); }

std::string judged_line(const Rule& rule, const RuleVerdict& verdict) { return in_file(verdict) + in_between + rule.text + "\n"; }

std::optional<RuleVerdict> judged_before(const Rule& rule) {
    static const Verdicts known = read_verdicts();
    const auto found = known.find(rule.text);
    return found == known.end() ? std::nullopt : std::optional(found->second);
}

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
