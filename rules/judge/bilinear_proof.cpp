#include "rules/judge/bilinear_proof.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "egraph/rewrite.hpp"
#include "nest/term/bilinear.hpp"
#include "rules/judge/bilinear_identity.hpp"

namespace loopegg {
namespace {

const ChoiceCall* choice_of(const Rule& rule, const Term& variable) {
    const auto found = std::find_if(rule.choices.begin(), rule.choices.end(), [&](const ChoiceCall& c) { return c.variable == variable.op(); });
    return found == rule.choices.end() ? nullptr : &*found;
}

// What a word or a variable of the rule may be.
std::vector<Term> values_of(const Rule& rule, const Term& t) {
    if (!is_variable(t.op())) return {t};
    const ChoiceCall* c = choice_of(rule, t);
    return c ? c->values : std::vector<Term>{};
}

// (site ?i) of the list LIST ?n DOWN ALONG, for the algorithms of the preparation.
bool is_nest_of(const Rule& rule, const Term& nest, const char* list, const Term& how) {
    const ChoiceCall* c = choice_of(rule, nest);
    const Term& site = rule.left[0].term;
    return c && c->list && c->list->name == list && c->arguments.size() == 3 && c->arguments[0].text == to_string(site[0]) &&
           c->arguments[1].text == to_string(how[0]) && c->arguments[2].text == to_string(how[1]);
}

// Why what an algorithm is stated to be is not the correlation; empty where it is.
std::string wrong_algorithm(const Rule& rule, const Term& named) {
    const std::vector<Term> values = values_of(rule, named);
    if (values.empty()) return "the algorithms that it uses are not written out";
    for (const Term& value : values) {
        const auto form = bilinear_form(value);
        if (!form) return fmt::format("'{}' is no bilinear algorithm", to_string(value));
        if (const auto fault = bilinear_fault(*form)) return fmt::format("{} is not the correlation: {}", to_string(value), fault->why);
    }
    return {};
}

}  // namespace

bool is_bilinear(const Rule& rule) {
    const Term& right = rule.right[0].term;
    return right.is("prepare", 2) && right[0].is("bilinear", 2);
}

RuleVerdict prove_bilinear(const Rule& rule) {
    RuleVerdict verdict;
    const Term &left = rule.left[0].term, &how = rule.right[0].term[0], &row = rule.right[0].term[1];
    const bool whole_site = left.is("site", 1) && left[0].size() == 0 && is_variable(left[0].op());
    const bool a_row = row.is("then", 2) && row[0].is("then", 2) && row[0][0].is("site", 1);
    const bool ours = rule.arrow == Arrow::forward && whole_site && a_row && is_nest_of(rule, row[0][0][0], "bilinear-input", how) &&
                      is_nest_of(rule, row[0][1], "bilinear-products", how) && is_nest_of(rule, row[1], "bilinear-output", how);
    if (!ours) {
        verdict.why =
            "the three nests are not those of one convolution and one pair of algorithms: (site ?n) becomes its input, products and output for the same pair";
        return verdict;
    }
    for (const Term& named : how.children())
        if (verdict.why.empty()) verdict.why = wrong_algorithm(rule, named);
    if (!verdict.why.empty()) return verdict;
    verdict.proof = RuleVerdict::Proof::all_sizes;
    // Sums are taken another way unless the rule asks whether it may.
    verdict.reorders_sums = std::none_of(rule.guards.begin(), rule.guards.end(), [](const GuardCall& g) { return g.guard->name == "sums-may-differ"; });
    return verdict;
}

}  // namespace loopegg
