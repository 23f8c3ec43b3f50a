// Applies the rules that span sites to a row of nests: batch norms, activations and additions that follow a site become a part of the site.
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
    enum class Effect { takes_in, prepares, arranges };  // one nest fewer; fewer operands at run time; neither
    std::string rule;
    Term value;  // after the step
    Effect effect;
};

// A value that is computed block by block (nest/term/blockwise.hpp), and the rules that lead to it, in order.
struct BlockForm {
    Term value;  // its nests are those of whole matrices
    std::vector<std::string> rules;
};

// The phase `fuse` of a rule file. A file without this phase fuses nothing.
class FusionRules {
public:
    // Rules are judged when they are loaded.
    explicit FusionRules(const std::filesystem::path& file);
    // Takes the user's file where it has the phase, else the shipped file. A process reads the same files once.
    static std::shared_ptr<const FusionRules> of(const std::filesystem::path& own, const std::filesystem::path& shipped);

    // The phase grows an e-graph from a VALUE, and extraction takes the value with the fewest nests, and among these the value that reads the fewest operands
    // at run time. The steps are the proof that both values are equal; there are none where extraction takes the value itself.
    std::vector<FusionStep> fuse(const Term& value) const;

    // The values that the phase `stream` makes equal to this one and that are computed block by block, one for each size of the blocks of columns. None where
    // sums must keep their order, or the file has no such phase.
    std::vector<BlockForm> block_forms(const Term& value, bool strict_fp = false) const;

private:
    explicit FusionRules(std::shared_ptr<const RuleBook> book);
    std::vector<FusionStep> derive(const Term& value) const;

    std::shared_ptr<const RuleBook> book_;
    const Phase* phase_;  // null: the file has no such phase
    mutable std::mutex mutex_;
    mutable std::unordered_map<Term, std::vector<FusionStep>> known_;
};

}  // namespace loopegg
