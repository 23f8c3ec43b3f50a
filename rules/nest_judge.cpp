#include "rules/nest_judge.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "base/number.hpp"
#include "rules/judge/net_proof.hpp"
#include "rules/judge/schedule_judge.hpp"
#include "rules/judge/value_proof.hpp"
#include "rules/net_judge.hpp"
#include "rules/value_judge.hpp"

#include <fmt/format.h>
#include "base/error.hpp"
#include "base/hash.hpp"
#include "egraph/runner.hpp"
#include "nest/judge/isl_judge.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "rules/nest_instance.hpp"

namespace loopegg {
namespace {

RuleVerdict refuted(const Refutation& by) {
    RuleVerdict verdict;
    verdict.proof = RuleVerdict::Proof::refuted, verdict.why = by.message, verdict.counterexample = by.instance;
    return verdict;
}

// Twice each of the first few numbers that the rule names: where a bound such as 64 dodges small nests, 128 may be beyond it.
std::vector<std::int64_t> sizes_beyond(const Rule& rule) {
    constexpr std::size_t most = 2;
    constexpr std::int64_t smallest = 8, largest = 1024;
    std::set<std::int64_t> all;
    std::string word;
    for (const char c : rule.text + " ") {
        if (c != ' ' && c != '(' && c != ')') {
            word += c;
            continue;
        }
        const auto n = number_in<std::int64_t>(word);
        if (n && *n >= smallest && *n <= largest && all.size() < most) all.insert(2 * *n);
        word.clear();
    }
    return {all.begin(), all.end()};
}

RuleVerdict judge_schedules(const Rule& rule, bool deep) {
    if (const auto wrong = try_nest_rule(rule, deep ? TrialEffort{200, 6000} : TrialEffort{})) return refuted(*wrong);
    std::vector<std::int64_t> sizes;
    RuleVerdict verdict = prove_schedule_rule(rule, &sizes);
    if (verdict.accepted()) return verdict;
    if (sizes.empty()) sizes = sizes_beyond(rule);
    if (sizes.empty()) return verdict;
    sizes.push_back(4);  // of the axes that do not matter
    const auto wrong = try_nest_rule_at(rule, sizes);
    return wrong ? refuted(*wrong) : verdict;
}

RuleVerdict judge(const Rule& rule, bool deep) {
    if (rule.left.size() != 1) return refuted({"a rule over nests has one pattern a side: sites in a row are one term, (then VALUE NEST)", rule.text});
    if (is_net_rule(rule)) {
        if (const auto wrong = judge_net_rule(rule)) return refuted(*wrong);
        return prove_net_rule(rule);
    }
    if (!is_value_rule(rule)) return judge_schedules(rule, deep);
    const auto wrong = judge_value_rule(rule);
    return wrong ? refuted(*wrong) : prove_value_rule(rule);
}

}  // namespace

RuleVerdict judge_nest_rule(const Rule& rule, bool deep) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, bool>, RuleVerdict> known;
    std::pair<std::string, bool> key{rule.text, deep};
    for (const ChoiceCall& c : rule.choices)  // the text of a rule has the names of algorithms alone
        for (const Term& v : c.values) key.first += " " + to_string(v);
    {
        std::lock_guard lock(mutex);
        if (auto it = known.find(key); it != known.end()) return it->second;
    }
    RuleVerdict answer = judge(rule, deep);
    std::lock_guard lock(mutex);
    return known.emplace(std::move(key), std::move(answer)).first->second;
}

namespace {

// Small and awkward statements: extents with few and with no common divisors, padding, strides, groups; a dependence that interchange reverses; an
// assignment; a maximum. The last ones are for rules that ask for size (large statements are not interpreted), for transforms of tiles, for channels that
// are groups, for an odd number of products, and for rows that no whole number of vectors fills.
constexpr std::array<const char*, 16> statements{
    "(linear 2 6 4)",
    "(conv2d 1 1 4 6 4 4 2 2 1 1 1 1 1 1)",
    "(recurrence 8 6)",
    "(row_softmax 2 6 1)",
    "(recurrence 7 5)",
    "(max_pool 1 4 5 5 2 2 2 2 1 1)",
    "(matmul 1 4 6 8)",
    "(conv2d 1 2 4 4 6 4 1 2 2 1 0 0 1 1)",
    "(linear 1 128 96)",
    "(conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1)",
    "(bilinear_input [-1,0,1,0|0,1,1,0|0,-1,1,0|0,-1,0,1] [-1,0,1,0|0,1,1,0|0,-1,1,0|0,-1,0,1] 2 2 1 8 4 3 1 1)",
    "(bilinear_output [1,1,1,0|0,1,-1,1] [1,1,1,0|0,1,-1,1] 1 8 3 4)",
    "(row_sum 3 8 1)",
    "(conv2d 1 8 1 1 4 4 3 3 1 1 1 1 1 1)",
    "(matmul 3 4 8 2)",
    "(row_sum 3 6 1)",
};
constexpr std::size_t small_statements = 8;
constexpr double max_interpreted = 20000;

using Random = std::mt19937_64;

struct NestTrial {
    int matched = 0;
    std::optional<Refutation> refuted;
};

// The nest inside a (restore pointwise ...). Channels that a convolution brings back are a function of the computed ones, whatever its weights. So two such
// nests are equal where the nests inside are.
Term computed(const Term& nest) { return nest_parts(nest).restore == "pointwise" ? nest[1] : nest; }

std::optional<std::string> nest_difference(const Term& before, const Term& after) {
    NestParts a = nest_parts(before), b = nest_parts(after);
    Statement statement = statement_of(a.statement);
    try {
        resolve(after);
    } catch (const UserError& e) {
        return "gives what is no schedule: " + e.diagnostics()[0].message;
    }
    if (auto why = isl_judge(statement, b.schedule, {.strict_fp = false, .may_restrict = true})) return "gives a schedule that " + *why;
    if (!isl_same_domain(statement, a.schedule, b.schedule)) return "visits other instances on the right than on the left";
    if (static_cast<double>(statement.instances()) <= max_interpreted) {
        Statement changed = statement_of(b.statement);
        Buffers buffers = whole_number_buffers(changed, 11);
        if (changed.combine != Combine::assign || statement.reads.size() > 1) {
            if (a.restore != b.restore) return "restores outputs in another way";
            if (interpret(computed(before), buffers) != interpret(computed(after), buffers)) return "computes something else";
        }
    }
    return {};
}

std::string shown(const Term& before, const Term& after) { return to_string(before) + " becomes " + to_string(after); }

// Runs the rule once over an e-graph that holds the instance alone, and judges every term that results.
NestTrial try_exact(const std::vector<Rewrite>& rewrites, std::shared_ptr<NestAnalysis> facts, const Term& nest) {
    EGraph graph;
    graph.attach(facts);
    NestTrial tried;
    ClassId root = graph.add(nest);
    try {
        Runner runner(graph, rewrites);
        RunOptions once;
        once.limits.iterations = 1;
        once.limits.nodes = 4000;
        RunReport report = runner.run(once);
        for (const IterationReport& it : report.iterations)
            for (const RuleReport& r : it.rules) tried.matched += r.applications > 0;
    } catch (const InvariantBroken& broken) {
        return {1, Refutation{"makes " + to_string(broken.a) + " equal to " + to_string(broken.b) + ", but " + broken.why, to_string(nest)}};
    }
    if (tried.matched == 0) return tried;
    int judged = 0;
    for (const Term& after : ClassTerms(graph).all(root, 40)) {
        if (after == nest) continue;
        if (++judged > 3) break;
        if (auto why = nest_difference(nest, after)) {
            tried.refuted = Refutation{*why, shown(nest, after)};
            break;
        }
    }
    return tried;
}

NestTrial try_neural(const std::vector<Rewrite>& rewrites, std::shared_ptr<NestAnalysis> facts, const Term& nest) {
    EGraph graph;
    graph.attach(facts);
    graph.add(nest);
    NestTrial tried;
    Runner runner(graph, rewrites);
    RunOptions once;
    once.limits.iterations = 1;
    runner.run(once);
    Statement statement = statement_of(nest_parts(nest).statement);
    int judged = 0;
    for (const Edge& edge : graph.edges()) {
        if (++judged > 6) break;
        ++tried.matched;
        Term after = graph.smallest_term(graph.find(edge.to));
        std::optional<std::string> why;
        try {
            NestParts parts = nest_parts(after);
            resolve(after);  // says what is wrong with axes that are none
            if (parts.statement != nest_parts(nest).statement)
                why = "changes the statement";
            else if (!isl_restricts(statement, nest_parts(nest).schedule, parts.schedule))
                why = "does not keep a part of the domain: a neural rule must restrict";
            else
                why = isl_judge(statement, parts.schedule, {.strict_fp = false, .may_restrict = true});
        } catch (const UserError& e) {
            why = "gives what is no nest: " + e.diagnostics()[0].message;
        }
        if (why) {
            tried.refuted = Refutation{*why, shown(nest, after)};
            break;
        }
    }
    return tried;
}

// Whether some factor does not divide its extent. There a restriction may take away nothing but the overhang.
bool is_uneven(const Term& t) {
    if ((t.is("quo", 2) || t.is("rem", 2)) && axis_extent(t[0]) % *t[1].integer() != 0) return true;
    return std::any_of(t.children().begin(), t.children().end(), is_uneven);
}

std::uint64_t seed_of(const Rule& rule) { return hash_of(rule.text).low; }

// An instance of the rule over this statement, which is a schedule that the judge finds nothing wrong with.
std::optional<NestInstance> sound_instance(const Rule& rule, const Term& pattern, const char* statement, Random& random) {
    try {
        auto instance = draw_instance(pattern, statement, random);
        if (!instance || (rule.arrow == Arrow::neural && is_uneven(instance->nest))) return {};
        if (nest_parts(instance->nest).restore.empty() && isl_judge(instance->nest, {.strict_fp = false, .may_restrict = true})) return {};
        resolve(instance->nest);
        return instance;
    } catch (const UserError&) {
        return {};  // this is no nest, because its axes do not fit together
    }
}

NestTrial try_nest(const Rule& rule, const Term& nest) {
    auto facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{
        .strict_fp = false, .proven = false, .gpu = {.units = units_for_trials(true)}, .cpu = {.cores = 2, .units = units_for_trials(false)}});
    const std::vector<Rewrite> rewrites = bind_rule(rule, {facts, {}});
    return rule.arrow == Arrow::neural ? try_neural(rewrites, facts, nest) : try_exact(rewrites, facts, nest);
}

}  // namespace

std::vector<MatrixUnit> units_for_trials(bool gpu) {
    if (gpu)
        return {{.instruction = "trial", .operands = "tf32", .rows = 16, .columns = 8, .depth = 8},
                {.instruction = "trial", .operands = "fp16", .rows = 16, .columns = 8, .depth = 16, .packed = 2}};
    return {{.instruction = "trial", .operands = "bf16", .rows = 4, .columns = 4, .depth = 8, .packed = 2, .tiles = 8},
            {.instruction = "trial", .operands = "int8", .rows = 4, .columns = 4, .depth = 8, .packed = 4, .tiles = 8}};
}

std::optional<Refutation> try_nest_rule(const Rule& rule, const TrialEffort& effort) {
    Random random(seed_of(rule));
    int tried = 0;
    bool both = rule.arrow == Arrow::both;
    // After enough instances, only roles of axes that did not come up yet are tried, because a missing guard shows with some roles only.
    std::map<std::string, int> seen;
    const int enough_of_each = 2, enough_attempts = 12 * effort.instances;
    for (int attempt = 0; attempt < effort.attempts; ++attempt) {
        const bool counted = tried >= effort.instances;
        if (counted && attempt >= enough_attempts) break;
        // The other statements are used only where the small ones do not suffice.
        std::size_t range = tried < 3 && attempt > effort.attempts / 3 ? statements.size() : small_statements;
        const char* stmt = statements[static_cast<std::size_t>(attempt) % range];
        const Term& pattern = both && attempt / static_cast<int>(statements.size()) % 2 ? rule.right[0].term : rule.left[0].term;
        const auto instance = sound_instance(rule, pattern, stmt, random);
        if (!instance || (++seen[instance->roles] > enough_of_each && counted)) continue;
        NestTrial result = try_nest(rule, instance->nest);
        if (result.refuted) return result.refuted;
        tried += result.matched > 0;
    }
    return {};
}

std::optional<Refutation> try_nest_rule_at(const Rule& rule, const std::vector<std::int64_t>& sizes) {
    constexpr int draws = 24;
    constexpr std::int64_t most = 5000;
    Random random(seed_of(rule));
    for (const std::int64_t a : sizes)
        for (const std::int64_t b : sizes) {
            if (std::min(a, b) < 2 || a * b > most * most / 4) continue;
            for (const char* form :
                 {"(recurrence {0} {1})", "(linear 2 {0} {1})", "(row_sum {0} {1} 1)", "(matmul 1 3 {0} {1})", "(conv2d 1 1 {0} {1} 3 3 2 2 1 1 0 0 1 1)"}) {
                const std::string statement = fmt::format(fmt::runtime(form), a, b);
                for (int draw = 0; draw < draws; ++draw)
                    if (const auto instance = sound_instance(rule, rule.left[0].term, statement.c_str(), random))
                        if (NestTrial result = try_nest(rule, instance->nest); result.refuted) return result.refuted;
            }
        }
    return {};
}

}  // namespace loopegg
