#include "optimize/class_rules.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "optimize/paid_sequences.hpp"

namespace loopegg {
namespace {

// Why a set is not for the class; empty where the set is for the class.
std::string other_classes(const RuleSet& set, const std::string& name) {
    std::vector<std::string> classes;
    for (const std::string& tag : set.tags)
        if (architecture_class(tag)) classes.push_back(tag);  // other tags say what machine a set is for
    if (classes.empty() || std::find(classes.begin(), classes.end(), name) != classes.end()) return "";
    return fmt::format("its set '{}' is for {}", set.name, join(classes, ", "));
}

std::set<Symbol> operators_of(const std::vector<Rooted>& side) {
    std::set<Symbol> found;
    std::vector<Term> waiting;
    for (const Rooted& r : side) waiting.push_back(r.term);
    while (!waiting.empty()) {
        const Term t = waiting.back();
        waiting.pop_back();
        found.insert(t.op());
        waiting.insert(waiting.end(), t.children().begin(), t.children().end());
    }
    return found;
}

// Whether the rule makes an operator that its own left side does not have, but that other rules look for (`wanted`).
bool makes_way(const Rule& rule, const std::set<Symbol>& wanted) {
    const std::set<Symbol> before = operators_of(rule.left);
    for (Symbol op : operators_of(rule.right))
        if (wanted.contains(op) && !before.contains(op)) return true;
    return false;
}

std::string too_few(std::int64_t networks) { return fmt::format("fewer than {} of {} counted networks were returned with it", enough_of(networks), networks); }

// Steps of neural rules in returned networks.
std::int64_t paid_by_neural_rules(const RuleBook& book, const ClassCounts& counts) {
    std::int64_t sum = 0;
    for (const Rule* rule : book.rules())
        if (const RuleSum* count = counts.find(*rule); count && rule->arrow == Arrow::neural) sum += count->paid;
    return sum;
}

// How many networks were counted with the texts that the rules of a sequence have in the book.
std::int64_t networks_counted(const RuleBook& book, const ClassCounts& counts, const std::string& sequence) {
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (const std::string& name : rules_in(sequence)) {
        const Rule* rule = book.find_rule(name);
        const RuleSum* count = rule ? counts.find(*rule) : nullptr;
        fewest = std::min(fewest, count ? count->networks : 0);
    }
    return fewest;
}

// Decides whether a rule paid.
struct Ledger {
    const ClassCounts& counts;
    const std::set<std::string>& keep;       // sequences whose rules stay in any case
    const std::set<std::string>& sequences;  // those that enough networks were returned with, and those to keep; empty where too little was counted
    std::int64_t paid_by_all;

    bool counted(const Rule& rule) const {
        const RuleSum* count = counts.find(rule);
        return count && count->networks >= enough_networks;
    }

    // Why a rule is left out because it did not pay; empty where it stays. `wanted`: operators that the neural rules look for. Steps that only make such an
    // operator for another rule may be missing from the shortest proofs, so a rule that makes one need not pay itself.
    std::string unpaid(const Rule& rule, const std::set<Symbol>& wanted = {}) const {
        if (!counted(rule) || in_sequences(keep, rule.name)) return "";  // a rule that was not counted is tried
        const RuleSum& count = *counts.find(rule);
        if (count.fired == 0) return fmt::format("it never fired in {} counted networks", count.networks);
        if (count.paid == 0 && (rule.arrow == Arrow::neural || !makes_way(rule, wanted)))
            return fmt::format("it fired {} times in {} counted networks, and none was returned with a step of it", count.fired, count.networks);
        if (rule.arrow == Arrow::neural && least_share * count.paid < paid_by_all)
            return fmt::format("only {} of {} neural steps that {} counted networks were returned with are its own", count.paid, paid_by_all, count.networks);
        if (rule.arrow == Arrow::neural && !sequences.empty() && !in_sequences(sequences, rule.name)) return too_few(count.networks);
        return "";
    }
};

// Removes from a rule's lists the values that no sequence has.
void leave_out_values(Rule& rule, const std::set<std::string>& sequences, std::int64_t networks, std::vector<PrunedRule>& pruned) {
    for (ChoiceCall& choice : rule.choices)
        std::erase_if(choice.values, [&](const Term& value) {
            const std::string name = choice.variable.text(), text = to_string(value);
            if (in_sequences(sequences, rule.name, name + "=" + text)) return false;
            pruned.push_back({fmt::format("{} {}={}", rule.name, name, text), too_few(networks)});
            return true;
        });
}

}  // namespace

std::string class_name(const std::string& asked, const Graph& graph) {
    if (asked == "auto") return to_string(classify_architecture(graph).kind);
    if (asked == "all" || architecture_class(asked)) return asked;
    std::vector<std::string> known = architecture_class_names();
    known.insert(known.end(), {"all", "auto"});
    throw UserError(Diagnostic{fmt::format("'{}' is no class of architecture: expected {}", asked, join(known, ", ")), {}, did_you_mean(asked, known)});
}

PassOrder passes_named(const std::string& text) {
    if (const auto order = pass_order(text)) return *order;
    throw UserError(
        fmt::format("'{}' is no order of passes: expected together-K (all rules, K rounds) or in-turn-K (K rounds, one ruleset after another)", text));
}

ClassRules rules_for_class(const RuleBook& book, const Phase& phase, const std::string& name, const CountTable& counts, const std::set<std::string>& keep) {
    ClassRules out;
    out.name = name;
    out.book = book;
    if (name == "all") return out;
    const auto known = counts.find(name);
    const ClassCounts none, &counted = known == counts.end() ? none : known->second;
    for (const auto& [sequence, networks] : counted.sequences)
        if (const std::int64_t all = networks_counted(book, counted, sequence); all >= enough_networks && networks >= enough_of(all)) out.paid.insert(sequence);
    if (!out.paid.empty())  // otherwise every sequence is searched for
        for (const std::string& sequence : keep) out.paid.insert(neural_part(book, sequence));
    const Ledger ledger{counted, keep, out.paid, paid_by_neural_rules(book, counted)};
    const auto of_phase = [&](const RuleSet& set) { return std::find(phase.sets.begin(), phase.sets.end(), set.name) != phase.sets.end(); };
    std::set<Symbol> wanted;
    for (const RuleSet& set : book.sets)
        for (const Rule& rule : set.rules)
            if (rule.arrow == Arrow::neural && of_phase(set) && other_classes(set, name).empty() && ledger.unpaid(rule).empty())
                wanted.merge(operators_of(rule.left));
    bool neural = false;
    for (RuleSet& set : out.book.sets) {
        if (!of_phase(set)) continue;
        const std::string not_for = other_classes(set, name);
        std::vector<Rule> left;
        for (Rule& rule : set.rules) {
            const bool is_counted = ledger.counted(rule);
            const RuleSum count = is_counted ? *counted.find(rule) : RuleSum{};
            const double asked = is_counted ? static_cast<double>(count.asked) / static_cast<double>(count.networks) : 0;
            out.asked_by_all += asked;
            if (!is_counted) out.uncounted.insert(rule.name);
            std::string why = not_for.empty() ? ledger.unpaid(rule, wanted) : not_for;
            if (why.empty()) {
                out.asked[rule.name] = asked;
                neural = neural || rule.arrow == Arrow::neural;
                if (rule.arrow == Arrow::neural && !out.paid.empty() && is_counted) leave_out_values(rule, out.paid, count.networks, out.pruned);
                left.push_back(std::move(rule));
            } else {
                out.pruned.push_back({rule.name, std::move(why)});
            }
        }
        set.rules = std::move(left);
    }
    bool had_neural = false;
    for (const Rule* rule : book.rules_of(phase)) had_neural = had_neural || rule->arrow == Arrow::neural;
    out.searches = neural || !had_neural;
    if (out.asked_by_all == 0) out.asked.clear();
    return out;
}

bool searched_for(const ClassRules& rules, const Variant& variant) {
    if (rules.paid.empty() || variant.steps.empty() || rules.paid.contains(neural_sequence(rules.book, variant))) return true;
    return std::any_of(variant.steps.begin(), variant.steps.end(), [&](const DerivationStep& s) { return s.neural && rules.uncounted.contains(s.rule); });
}

}  // namespace loopegg
