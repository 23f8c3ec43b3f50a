#include "rewrite/schedule_rules.hpp"

#include <algorithm>
#include <atomic>
#include <random>
#include <tuple>
#include <unordered_set>

#include "base/error.hpp"
#include "base/team.hpp"
#include "egraph/runner.hpp"
#include "extract/from_egraph.hpp"
#include "extract/search_terms.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/schedule/cpu_estimate.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "rules/judged.hpp"
#include "rules/limits.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

constexpr std::size_t asked = 800;  // terms of one nest whose cost is estimated
constexpr const char* phase_names[] = {"schedule", "refine", "vary"};
constexpr std::size_t kept = 64;  // so many schedules are kept at least: a caller soon asks for more, and growing the e-graph again is costly

void parts_of(const Term& schedule, std::vector<Term>& out) {
    if (schedule.is("cat", 2))
        parts_of(schedule[0], out), parts_of(schedule[1], out);
    else
        out.push_back(schedule);
}

std::vector<Term> first(const std::vector<Term>& all, std::size_t most) {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), most))};
}

bool is_schedule(const Term& nest) {
    try {
        resolve(nest);
        return true;
    } catch (const UserError&) {
        return false;
    }
}

// What a schedule costs, by the machine's estimate.
class Estimate {
public:
    Estimate(const Term& statement, const Term& naive, const ScheduleMachine& machine) : statement_(statement), naive_(naive), machine_(machine) {
        if (machine.cpu()) loops_ = naive_loops(statement_of(statement), naive);
    }

    double operator()(const Term& nest) const {
        if (const GpuMachine* gpu = machine_.gpu()) return gpu_cost(nest, *gpu);
        const VectorMachine& cpu = *machine_.cpu();
        if (nest[0] == statement_) return cpu_cost(loops_, nest[1], cpu);
        const NaiveLoops loops = naive_loops(statement_of(nest[0]), naive_);  // a rule changed the layout of its operands
        return cpu_cost(loops, nest[1], cpu);
    }

private:
    Term statement_, naive_;
    ScheduleMachine machine_;
    NaiveLoops loops_;
};

}  // namespace

bool ScheduleRules::serves(const RuleSet& set) const {
    const std::string own = machine_.gpu() ? "gpu" : "cpu", other = own == "gpu" ? "cpu" : "gpu";
    const auto tagged = [&](const std::string& tag) { return std::find(set.tags.begin(), set.tags.end(), tag) != set.tags.end(); };
    return tagged(own) || !tagged(other);
}

void ScheduleRules::take(const std::string& name, const std::shared_ptr<const RuleBook>& book) {
    const Phase* phase = book->find_phase(name);
    if (!phase) return;
    OfPhase of{book, phase, {}};
    bool any = false;
    for (const std::string& set : phase->sets) {
        const RuleSet* found = book->find_set(set);
        if (!found || !serves(*found)) continue;
        any = true;
        for (const Rule& r : found->rules) of.rules.push_back(&r);
    }
    if (any) phases_[name] = std::move(of);
}

ScheduleRules::ScheduleRules(const std::filesystem::path& file, const ScheduleMachine& machine) : machine_(machine) {
    const auto book = std::make_shared<const RuleBook>(load_rules(file));
    for (const char* name : phase_names) take(name, book);
}

std::shared_ptr<const ScheduleRules> ScheduleRules::of(const std::filesystem::path& own, const std::filesystem::path& shipped, const ScheduleMachine& machine) {
    static std::mutex mutex;
    static std::map<std::tuple<std::filesystem::path, std::filesystem::path, ScheduleMachine>, std::shared_ptr<const ScheduleRules>> all;
    const std::lock_guard lock(mutex);
    auto& found = all[{own, shipped, machine}];
    if (found) return found;
    if (own.empty()) return found = std::make_shared<const ScheduleRules>(shipped, machine);
    auto made = std::make_shared<ScheduleRules>(own, machine);
    if (made->phases_.contains("schedule")) return found = std::move(made);
    const auto book = std::make_shared<const RuleBook>(load_rules(shipped));
    for (const char* name : phase_names)
        if (!made->phases_.contains(name)) made->take(name, book);
    return found = std::move(made);
}

std::shared_ptr<NestAnalysis> ScheduleRules::facts() const {
    NestAnalysis::Options options{.strict_fp = machine_.strict_fp, .proven = !uses_unproved_rules(), .gpu = {}, .cpu = {}};
    if (const GpuMachine* gpu = machine_.gpu()) options.gpu = *gpu;
    if (const VectorMachine* cpu = machine_.cpu()) options.cpu = *cpu;
    return std::make_shared<NestAnalysis>(options);
}

// The schedules of a list of loops: a nest, or one part of a domain that was cut.
std::vector<Term> ScheduleRules::part_schedules(const Term& statement, const Term& naive, std::size_t most) const {
    if (!phases_.contains("schedule")) return {naive};
    EGraph egraph;
    Binding binding;
    binding.facts = facts();
    egraph.attach(binding.facts);
    const ClassId added = egraph.add(Term("nest", {statement, naive}));
    egraph.rebuild();
    for (const char* name : {"schedule", "refine"})
        if (const auto it = phases_.find(name); it != phases_.end()) Runner(egraph, bind_rules(it->second.rules, binding)).run(limits_of(*it->second.phase));
    const ClassId roots[] = {egraph.find(added)};
    const EGraphCopy copy = copy_of(egraph, roots);
    const Estimate estimate(statement, naive, machine_);
    const TermCost cost = [&](std::span<const Term> nests) {
        std::vector<double> all;
        for (const Term& n : nests) all.push_back(estimate(n));
        return all;
    };
    TermSearch search;
    search.evaluations = asked;
    std::vector<Term> out;
    for (const RankedTerm& t : search_terms(copy.egraph, copy.egraph.roots.front(), most, cost, search).best) out.push_back(t.term[1]);
    if (out.empty()) out.push_back(naive);
    return out;
}

std::vector<Term> ScheduleRules::schedules(const Term& nest, std::size_t most) const {
    const NestParts given = nest_parts(nest);
    const Statement statement = statement_of(given.statement);
    if (statement.keeps_an_order()) return {nest};
    const Term naive = schedule_of(statement, domain_of(nest));
    const Term key = nest_from({given.statement, naive, given.restore});
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = known_.find(key); known != known_.end() && known->second.asked >= most) return first(known->second.schedules, most);
    }
    const std::size_t wanted = std::max(most, kept);
    // The parts of a domain that was cut are arranged each by itself. The k-th best schedules of all parts form one schedule.
    std::vector<Term> parts;
    parts_of(naive, parts);
    std::vector<std::vector<Term>> found;
    std::size_t longest = 0;
    for (const Term& part : parts) found.push_back(part_schedules(given.statement, part, wanted)), longest = std::max(longest, found.back().size());
    std::vector<Term> out;
    for (std::size_t i = 0; i < longest; ++i) {
        const auto nth = [&](std::size_t part) { return found[part][std::min(i, found[part].size() - 1)]; };
        Term whole = nth(parts.size() - 1);
        for (std::size_t p = parts.size() - 1; p-- > 0;) whole = Term("cat", {nth(p), whole});
        const Term made = nest_from({given.statement, whole, given.restore});
        if (is_schedule(made)) out.push_back(made);
    }
    if (out.empty()) out.push_back(key);
    const std::lock_guard lock(mutex_);
    known_[key] = {out, wanted};
    return first(out, most);
}

void ScheduleRules::prepare(std::span<const Term> nests, std::size_t most) const {
    std::atomic<std::size_t> next{0};
    run_together(processors(), [&](std::size_t) {
        for (std::size_t i = next++; i < nests.size(); i = next++) schedules(nests[i], most);
    });
}

std::vector<Term> ScheduleRules::near(const Term& nest, std::uint64_t seed, std::size_t most) const {
    const auto vary = phases_.find("vary");
    if (vary == phases_.end()) return {};
    EGraph egraph;
    Binding binding;
    binding.facts = facts();
    egraph.attach(binding.facts);
    const ClassId root = egraph.add(nest);
    egraph.rebuild();
    Runner(egraph, bind_rules(vary->second.rules, binding)).run(limits_of(*vary->second.phase));

    ClassTerms space(egraph);
    std::mt19937_64 random(seed);
    std::unordered_set<Term> seen{nest};
    std::vector<Term> out;
    for (std::size_t i = 0; i < 4 * most && out.size() < most; ++i)  // in a small class most draws are not new
        if (Term t = space.sample(root, random); seen.insert(t).second) out.push_back(std::move(t));
    return out;
}

}  // namespace loopegg
