// What the rules of a target make of the nests that run on it: first schedules, schedules near one that turned out well, and sites with what follows them.
//
// Everything is a term that an e-graph holds, grown by a phase of a rule file and taken out by cost. Nothing here knows a rule by its name.
#pragma once
#include <filesystem>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "extract/search_terms.hpp"
#include "nest/schedule/vector_machine.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// One step of a row of sites becoming fewer.
struct FusionStep {
    std::string rule;
    Term value;          // after it
};

class SiteRules {
public:
    // A phase comes from the first file that has one of its name; a phase that none has does nothing. Rules are judged when they are loaded.
    SiteRules(const std::vector<std::filesystem::path>& files, const VectorMachine& machine);
    // The same files for the same machine are read once in a process.
    static std::shared_ptr<const SiteRules> of(const std::vector<std::filesystem::path>& files, const VectorMachine& machine);

    // The cheapest schedules of a NEST's instances by the estimate, of those that the phase 'schedule' gives; never empty, at most so many.
    std::vector<Term> schedules(const Term& nest, std::size_t most) const;
    Term schedule(const Term& nest) const;   // the first of them

    // The cheapest by `cost` of what the phase 'tune' makes of a schedule, without the schedule itself.
    std::vector<Term> near(const Term& nest, const TermCost& cost, const TermSearch& search, std::size_t most) const;

    // What the phase 'fuse' makes of a row of sites, step by step: the value with fewest sites, and of those the one that does least to each output
    // element. Nothing where no rule makes it better.
    std::vector<FusionStep> fuse(const Term& value) const;

    const VectorMachine& machine() const { return machine_; }

private:
    const RuleBook* book_with(std::string_view phase) const;
    std::vector<Term> part_schedules(const Term& statement, const Term& naive, bool alone, std::size_t most) const;

    std::vector<RuleBook> books_;
    VectorMachine machine_;
    mutable std::mutex mutex_;
    mutable std::unordered_map<Term, std::vector<Term>> known_;   // by nest in its naive form: the longest list that was asked for
    mutable std::unordered_map<Term, std::vector<FusionStep>> fused_;   // by row of sites
};

}  // namespace loopegg
