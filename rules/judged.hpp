// The rules that ship with the program were judged when they were written. rules/judged.txt keeps a hash of each of these rules, so that a run that uses
// them starts at once. A rule of which one word was changed has another hash, and is judged like a user's rule.
#pragma once
#include <string>

#include "rules/rule.hpp"

namespace loopegg {

// The hash of the rule in its canonical form. A rule with another word has another hash.
std::string rule_hash(const Rule& rule);

// One line of rules/judged.txt: the hash of the rule, and its name.
std::string judged_line(const Rule& rule);

// Whether the rule stands in rules/judged.txt, word for word.
bool judged_before(const Rule& rule);

}  // namespace loopegg
