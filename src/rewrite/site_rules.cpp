#include "rewrite/site_rules.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "egraph/runner.hpp"
#include "extract/from_egraph.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/schedule/estimate.hpp"
#include "nest/term/facts.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

// An e-graph that a phase has grown from one term.
struct Grown {
    EGraph egraph;
    ClassId root;
};

Grown grow(const Term& term, const RuleBook& book, const Phase& phase, const VectorMachine& machine, bool alone = true) {
    Grown g{EGraph(), none};
    Binding binding;
    binding.facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = false, .proven = true, .machine = machine, .part = !alone});
    g.egraph.attach(binding.facts);
    g.root = g.egraph.add(term);
    g.egraph.rebuild();
    Runner(g.egraph, bind_rules(book.rules_of(phase), binding)).run(limits_of(phase));
    g.root = g.egraph.find(g.root);
    return g;
}

FoundTerms extracted(const Grown& g, std::size_t most, const TermCost& cost, const TermSearch& search) {
    const ClassId roots[] = {g.root};
    const EGraphCopy copy = copy_of(g.egraph, roots);
    return search_terms(copy.egraph, copy.egraph.roots.front(), most, cost, search);
}

bool is_schedule(const Term& nest) {
    try {
        resolve(nest);
        return true;
    } catch (const UserError&) {
        return false;
    }
}

Term with_restore(const std::string& how, const Term& nest) { return how.empty() ? nest : Term("restore", {Term(how), nest}); }

void parts_of(const Term& schedule, std::vector<Term>& out) {
    if (schedule.is("cat", 2)) parts_of(schedule[0], out), parts_of(schedule[1], out);
    else out.push_back(schedule);
}

bool keeps_an_order(const Statement& s) {
    return std::any_of(s.axes.begin(), s.axes.end(), [](const Iterator& a) { return a.role == AxisRole::sequential; });
}

}  // namespace

SiteRules::SiteRules(const std::vector<std::filesystem::path>& files, const VectorMachine& machine) : machine_(machine) {
    for (const auto& file : files) books_.push_back(load_rules(file));
}

std::shared_ptr<const SiteRules> SiteRules::of(const std::vector<std::filesystem::path>& files, const VectorMachine& machine) {
    static std::mutex mutex;
    static std::map<std::tuple<std::vector<std::filesystem::path>, int, int, int, bool>, std::shared_ptr<const SiteRules>> all;
    const std::lock_guard lock(mutex);
    auto& found = all[{files, machine.cores, machine.lanes, machine.registers, machine.graphics}];
    if (!found) found = std::make_shared<const SiteRules>(files, machine);
    return found;
}

const RuleBook* SiteRules::book_with(std::string_view phase) const {
    const auto found = std::find_if(books_.begin(), books_.end(), [&](const RuleBook& b) { return b.find_phase(phase) != nullptr; });
    return found == books_.end() ? nullptr : &*found;
}

// The schedules of a list of loops: a nest, or one part of a domain that was cut.
std::vector<Term> SiteRules::part_schedules(const Term& statement, const Term& naive, bool alone, std::size_t most) const {
    const RuleBook* book = book_with("schedule");
    if (!book) return {naive};
    const Grown g = grow(Term("nest", {statement, naive}), *book, *book->find_phase("schedule"), machine_, alone);
    const Statement s = statement_of(statement);
    const TermCost cost = [&](std::span<const Term> nests) {
        std::vector<double> all;
        for (const Term& n : nests) all.push_back(schedule_cost(s, naive, n[1], machine_));
        return all;
    };
    TermSearch search;
    std::vector<Term> out;
    for (const RankedTerm& t : extracted(g, most, cost, search).best) out.push_back(t.term[1]);
    if (out.empty()) out.push_back(naive);
    return out;
}

std::vector<Term> SiteRules::schedules(const Term& nest, std::size_t most) const {
    const NestParts given = nest_parts(nest);
    const Statement statement = statement_of(given.statement);
    if (keeps_an_order(statement)) return {nest};
    const Term naive = schedule_of(statement, domain_of(nest));
    const Term key = with_restore(given.restore, Term("nest", {given.statement, naive}));
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = known_.find(key); known != known_.end() && known->second.size() >= most) return {known->second.begin(), known->second.begin() + static_cast<std::ptrdiff_t>(most)};
    }
    // Parts of a domain that was cut are arranged each by itself; the k-th best of all of them go together.
    std::vector<Term> parts;
    parts_of(naive, parts);
    std::vector<std::vector<Term>> found;
    std::size_t longest = 0;
    for (const Term& part : parts) found.push_back(part_schedules(given.statement, part, parts.size() == 1, most)), longest = std::max(longest, found.back().size());
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
    known_[key] = out;
    return out;
}

Term SiteRules::schedule(const Term& nest) const { return schedules(nest, 1).front(); }

std::vector<Term> SiteRules::near(const Term& nest, const TermCost& cost, const TermSearch& search, std::size_t most) const {
    const RuleBook* book = book_with("tune");
    if (!book) return {};
    std::vector<Term> out;
    for (const RankedTerm& t : extracted(grow(nest, *book, *book->find_phase("tune"), machine_), most + 1, cost, search).best)
        if (t.term != nest && out.size() < most) out.push_back(t.term);
    return out;
}

}  // namespace loopegg
