// What the rules of a file make of nests that run on a graphics processor: schedules, each a term that an e-graph holds, taken out by cost.
#pragma once
#include <filesystem>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "nest/schedule/gpu_estimate.hpp"
#include "rules/rule.hpp"

namespace loopegg {

class GpuRules {
public:
    // The phases 'schedule', which arranges a nest as a whole, and then 'refine' of the file; a file without the first leaves nests as they are. Rules are
    // judged when they are loaded.
    GpuRules(const std::filesystem::path& file, const GpuMachine& machine);
    // The same file for the same machine is read once in a process.
    static std::shared_ptr<const GpuRules> of(const std::filesystem::path& file, const GpuMachine& machine);

    // The cheapest schedules of a NEST's instances by the estimate; never empty, at most so many. Restricted nests are taken as they are.
    std::vector<Term> schedules(const Term& nest, std::size_t most) const;

private:
    std::vector<Term> part_schedules(const Term& statement, const Term& naive, std::size_t most) const;

    RuleBook book_;
    GpuMachine machine_;
    mutable std::mutex mutex_;
    struct Known {
        std::vector<Term> schedules;
        std::size_t asked = 0;        // fewer than that are all that there are
    };
    mutable std::unordered_map<Term, Known> known_;   // by nest in its naive form: the longest list that was asked for
};

}  // namespace loopegg
