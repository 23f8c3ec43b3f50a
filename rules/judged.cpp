#include "rules/judged.hpp"

#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/places.hpp"

namespace loopegg {
namespace {

std::set<std::string> read_hashes() {
    std::set<std::string> all;
    try {
        std::istringstream lines(read_file(shipped("rules/judged.txt")));
        for (std::string hash, name; lines >> hash >> name;) all.insert(hash);
    } catch (const UserError&) {  // an installation without the list tries every rule
    }
    return all;
}

}  // namespace

std::string rule_hash(const Rule& rule) { return hash_of(rule.text).hex(); }

std::string judged_line(const Rule& rule) { return rule_hash(rule) + " " + rule.name + "\n"; }

bool judged_before(const Rule& rule) {
    static const std::set<std::string> known = read_hashes();
    return known.contains(rule_hash(rule));
}

}  // namespace loopegg
