// The rules that ship with the program were judged when they were written. rules/judged.txt keeps the words of each of these rules and its verdict, so that a
// run that uses them starts at once. A rule of which one word was changed is judged like a user's rule.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "rules/rule.hpp"

namespace loopegg {

// The hash of the rule in its canonical form. A rule with another word has another hash.
std::string rule_hash(const Rule& rule);

// One line of rules/judged.txt: the verdict, and the words of the rule: "all-sizes sums | (rule ...)".
std::string judged_line(const Rule& rule, const RuleVerdict& verdict);

// The verdict on a rule that is in rules/judged.txt, word for word.
std::optional<RuleVerdict> judged_before(const Rule& rule);

// Whether this process uses rules that the judge could not prove (--unproved), and which ones it does use.
// Refused by default. The user decides once for a command, before any rule file is read.
void admit_unproved_rules();
bool admits_unproved();

// The names of the rules that were admitted unproved, each once, sorted: a result lists them.
void note_unproved_rule(const std::string& name);
std::vector<std::string> unproved_rules_in_use();
bool uses_unproved_rules();  // then a rule that breaks an invariant of an e-graph is the user's, not a fault of ours

}  // namespace loopegg
