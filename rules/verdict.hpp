// What the judge found out about a rule: whether it is sound, for which sizes, and what it does to sums and roundings.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace loopegg {

struct RuleVerdict {
    enum class Proof {
        all_sizes,  // proved for all sizes that the rule's conditions admit
        listed,     // proved for all extents, and for the factors of `most` alone: others are not used
        unproved,   // neither proved nor refuted
        refuted,    // there is a counterexample
    };
    Proof proof = Proof::unproved;
    std::string why;                           // of what is refused
    std::string counterexample;                // of a refuted rule: the terms; of an unproved one: the sizes that prevent this, if any
    std::map<std::string, std::int64_t> most;  // by variable: the largest factor that the proof covers

    // What the rule does, whatever its author wrote. Where a user forbids it, the rule does not apply.
    bool reorders_sums = false;         // forbidden by --strict-fp
    std::set<std::string> roundings{};  // of operands: a kind of numbers (tf32), or the variable of a kind; each is allowed by --allow alone

    bool accepted() const { return proof != Proof::unproved && proof != Proof::refuted; }
};

// One word for programs: "all-sizes", "listed", "unproved", "refuted"; and the way back. Throws UserError for another word.
std::string to_string(RuleVerdict::Proof proof);
RuleVerdict::Proof proof_named(const std::string& word);

// For people: "proved for all sizes", "proved for ?k up to 32".
std::string in_words(const RuleVerdict& verdict);

}  // namespace loopegg
