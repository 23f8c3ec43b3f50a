// Replays a proof against the rules, trusting nothing that made it.
//
// The checker shares no code with the engine. It reads terms, replaces variables and compares. A proof is the JSON that to_json(Proof)
// gives or a file holds. Guards and computed values cannot be replayed from terms alone, so the caller gives functions that answer for them.
// Where there is no such function, the proof must at least hold a record that says yes.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/term.hpp"
#include "egraph/rewrite.hpp"

namespace loopegg {

using CheckedSubstitution = std::map<std::string, Term>;

struct ProofRules {
    std::vector<Rewrite> rules;  // only names, patterns and texts are read
    // Does this guard hold for this substitution? The record is what the proof says about it.
    std::function<bool(const Guard&, const CheckedSubstitution&, const nlohmann::json& record)> guard{};
    // Is this value one that the choice offers?
    std::function<bool(const Choice&, const CheckedSubstitution&, const Term& value)> choice{};
    bool allow_asserted = false;  // merges that no rule made
    bool allow_neural = false;    // steps of neural rules, which are no equalities
};

struct ProofVerdict {
    bool valid = false;
    std::string why{};      // the first thing that is wrong, and in which step
    std::size_t steps = 0;  // replayed, premises included
};

ProofVerdict check_proof(const nlohmann::json& proof, const ProofRules& rules);

}  // namespace loopegg
