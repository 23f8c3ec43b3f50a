// Seeded damage to texts and binary files, for the short run in ./test.
#pragma once
#include <random>
#include <string>
#include <vector>

namespace loopegg {

// One to four small changes: bytes flipped, runs cut, doubled or taken from `other`, words that readers stumble over put in.
std::string damaged(std::string text, const std::string& other, std::mt19937& random);

}  // namespace loopegg
