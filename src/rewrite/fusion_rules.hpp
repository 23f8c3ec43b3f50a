// What the rules that span sites make of a row of nests: batch norms, activations and additions that follow a site become a part of it.
#pragma once
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/term.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct FusionStep {
    enum class Effect { takes_in, prepares, arranges };  // a nest less; fewer operands when it runs; neither
    std::string rule;
    Term value;  // after it
    Effect effect;
};

// The phase `fuse` of a rule file. A file that has none fuses nothing.
class FusionRules {
public:
    // Rules are judged when they are loaded.
    explicit FusionRules(const std::filesystem::path& file);
    // A file of one's own before the one that ships, where it has the phase. The same files are read once in a process.
    static std::shared_ptr<const FusionRules> of(const std::filesystem::path& own, const std::filesystem::path& shipped);

    // The phase grows an e-graph from a VALUE, and extraction takes the value that has the fewest nests, and of these the one that reads the fewest operands
    // when it runs. The steps are the proof that both are equal; none where the value itself is the one.
    std::vector<FusionStep> fuse(const Term& value) const;

private:
    explicit FusionRules(std::shared_ptr<const RuleBook> book);
    std::vector<FusionStep> derive(const Term& value) const;

    std::shared_ptr<const RuleBook> book_;
    const Phase* phase_;  // null: there is none
    mutable std::mutex mutex_;
    mutable std::unordered_map<Term, std::vector<FusionStep>> known_;
};

}  // namespace loopegg
