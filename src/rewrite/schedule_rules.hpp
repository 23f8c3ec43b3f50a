// The schedules that the rules of a file make for nests on one machine. Each schedule is a term of an e-graph, and the machine's estimate decides which
// terms are extracted.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "nest/schedule/gpu_estimate.hpp"
#include "nest/schedule/vector_machine.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// The machine that schedules are made for.
struct ScheduleMachine {
    std::variant<VectorMachine, GpuMachine> of;
    bool strict_fp = false;  // every sum keeps the order of the statement

    ScheduleMachine(const VectorMachine& machine, bool strict = false) : of(machine), strict_fp(strict) {}
    ScheduleMachine(const GpuMachine& machine, bool strict = false) : of(machine), strict_fp(strict) {}
    const VectorMachine* cpu() const { return std::get_if<VectorMachine>(&of); }
    const GpuMachine* gpu() const { return std::get_if<GpuMachine>(&of); }
    friend auto operator<=>(const ScheduleMachine&, const ScheduleMachine&) = default;
};

// The phases of a rule file that schedules come from:
//   schedule   arranges a nest as a whole, each way once
//   refine     continues from all schedules that `schedule` made
//   vary       continues from a schedule that was measured and turned out well
// A set that is tagged 'cpu' or 'gpu' serves machines of that kind alone. A file without a phase 'schedule' for the machine leaves nests as they are.
class ScheduleRules {
public:
    // Rules are judged when they are loaded.
    ScheduleRules(const std::filesystem::path& file, const ScheduleMachine& machine);
    // Prefers the user's file to the shipped one. Where the user's file has the phase 'schedule' for this machine, all three phases come from that file.
    // Otherwise only the phases that it has come from it. A process reads the same files for the same machine once.
    static std::shared_ptr<const ScheduleRules> of(const std::filesystem::path& own, const std::filesystem::path& shipped, const ScheduleMachine& machine);

    // The cheapest schedules of a NEST's instances by the estimate: at least one, and at most `most`. Restricted nests are taken as they are.
    std::vector<Term> schedules(const Term& nest, std::size_t most) const;
    // Works out the schedules of all these nests side by side, so that they are known when they are asked for.
    void prepare(std::span<const Term> nests, std::size_t most) const;
    // Up to `most` distinct nests that are equal to `nest`, drawn from the e-graph that 'vary' grows around it; never `nest` itself.
    std::vector<Term> near(const Term& nest, std::uint64_t seed, std::size_t most) const;
    bool varies() const { return phases_.contains("vary"); }

private:
    struct OfPhase {
        std::shared_ptr<const RuleBook> book;
        const Phase* phase;
        std::vector<const Rule*> rules;  // the rules that serve the machine
    };
    explicit ScheduleRules(const ScheduleMachine& machine) : machine_(machine) {}
    void take(const std::string& name, const std::shared_ptr<const RuleBook>& book);
    bool serves(const RuleSet& set) const;
    std::shared_ptr<class NestAnalysis> facts() const;
    std::vector<Term> part_schedules(const Term& statement, const Term& naive, std::size_t most) const;

    ScheduleMachine machine_;
    std::map<std::string, OfPhase> phases_;
    mutable std::mutex mutex_;
    struct Known {
        std::vector<Term> schedules;
        std::size_t asked;  // how many schedules were asked for; there may be fewer
    };
    mutable std::unordered_map<Term, Known> known_;  // by nest in its naive form
};

}  // namespace loopegg
