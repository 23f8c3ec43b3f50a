#include "rules/nest_judge.hpp"

#include <mutex>
#include <set>

#include "base/number.hpp"
#include "rules/judge/schedule_judge.hpp"
#include "rules/judge/value_proof.hpp"
#include "rules/nest_trial.hpp"
#include "rules/net_judge.hpp"
#include "rules/value_judge.hpp"

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
        RuleVerdict verdict;
        verdict.proof = RuleVerdict::Proof::tried, verdict.why = "tried on small networks";
        return verdict;
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

}  // namespace loopegg
