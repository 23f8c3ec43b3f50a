#include "rewrite/gpu_rules.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "egraph/runner.hpp"
#include "extract/from_egraph.hpp"
#include "extract/search_terms.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/term/facts.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

constexpr std::size_t asked = 800;   // terms whose cost is worked out, of one nest
constexpr std::size_t kept = 48;     // of these at least: who asks for one asks for more soon, and the e-graph is the cost

Term with_restore(const std::string& how, const Term& nest) { return how.empty() ? nest : Term("restore", {Term(how), nest}); }

void parts_of(const Term& schedule, std::vector<Term>& out) {
    if (schedule.is("cat", 2)) parts_of(schedule[0], out), parts_of(schedule[1], out);
    else out.push_back(schedule);
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

}  // namespace

GpuRules::GpuRules(const std::filesystem::path& file, const GpuMachine& machine) : book_(load_rules(file)), machine_(machine) {}

std::shared_ptr<const GpuRules> GpuRules::of(const std::filesystem::path& file, const GpuMachine& m) {
    static std::mutex mutex;
    static std::map<std::pair<std::filesystem::path, GpuMachine>, std::shared_ptr<const GpuRules>> all;
    const std::lock_guard lock(mutex);
    auto& found = all[{file, m}];
    if (!found) found = std::make_shared<const GpuRules>(file, m);
    return found;
}

// The schedules of a list of loops: a nest, or one part of a domain that was cut.
std::vector<Term> GpuRules::part_schedules(const Term& statement, const Term& naive, std::size_t most) const {
    if (!book_.find_phase("schedule")) return {naive};
    EGraph egraph;
    Binding binding;
    binding.facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = false, .proven = true, .gpu = machine_});
    egraph.attach(binding.facts);
    const ClassId added = egraph.add(Term("nest", {statement, naive}));
    egraph.rebuild();
    for (const char* name : {"schedule", "refine"})
        if (const Phase* phase = book_.find_phase(name)) Runner(egraph, bind_rules(book_.rules_of(*phase), binding)).run(limits_of(*phase));
    const ClassId roots[] = {egraph.find(added)};
    const EGraphCopy copy = copy_of(egraph, roots);
    const TermCost cost = [&](std::span<const Term> nests) {
        std::vector<double> all;
        for (const Term& n : nests) all.push_back(gpu_cost(n, machine_));
        return all;
    };
    TermSearch search;
    search.evaluations = asked;
    std::vector<Term> out;
    for (const RankedTerm& t : search_terms(copy.egraph, copy.egraph.roots.front(), most, cost, search).best) out.push_back(t.term[1]);
    if (out.empty()) out.push_back(naive);
    return out;
}

std::vector<Term> GpuRules::schedules(const Term& nest, std::size_t most) const {
    const NestParts given = nest_parts(nest);
    const Statement statement = statement_of(given.statement);
    if (statement.keeps_an_order()) return {nest};
    const Term naive = schedule_of(statement, domain_of(nest));
    const Term key = with_restore(given.restore, Term("nest", {given.statement, naive}));
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = known_.find(key); known != known_.end() && known->second.asked >= most) return first(known->second.schedules, most);
    }
    const std::size_t wanted = std::max(most, kept);
    // Parts of a domain that was cut are arranged each by itself; the k-th best of all of them go together.
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
        const Term made = with_restore(given.restore, Term("nest", {given.statement, whole}));
        if (is_schedule(made)) out.push_back(made);
    }
    if (out.empty()) out.push_back(key);
    const std::lock_guard lock(mutex_);
    known_[key] = {out, wanted};
    return first(out, most);
}

}  // namespace loopegg
