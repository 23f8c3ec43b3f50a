// The rules that ship with the program were judged when they were written: rules/judged.txt keeps a hash of each, so that a run that uses
// them starts at once. A rule with one word changed has another hash, and is tried like any other.
#pragma once
#include <string>

#include "rules/rule.hpp"

namespace loopegg {

// One line of rules/judged.txt: the hash of the rule in its one form, and its name.
std::string judged_line(const Rule& rule);

// Whether the rule stands there, word for word: it is the one that ships with the program, and no other of its name.
bool judged_before(const Rule& rule);

}  // namespace loopegg
