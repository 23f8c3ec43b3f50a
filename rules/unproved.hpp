// Whether this process uses rules that the judge could not prove (--unproved), and which ones it does use.
#pragma once
#include <string>
#include <vector>

namespace loopegg {

// Refused by default. The user decides once for a command, before any rule file is read.
void admit_unproved_rules();
bool admits_unproved();

// The names of the rules that were admitted unproved, each once, sorted: a result lists them.
void note_unproved_rule(const std::string& name);
std::vector<std::string> unproved_rules_in_use();
bool uses_unproved_rules();  // then a rule that breaks an invariant of an e-graph is the user's, not a fault of ours

}  // namespace loopegg
