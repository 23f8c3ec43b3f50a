#include "rules/judge/bilinear_proof.hpp"

#include <gmpxx.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "egraph/rewrite.hpp"
#include "nest/term/winograd.hpp"

namespace loopegg {
namespace {

// The fraction that an entry of a matrix was rounded from: a whole number over the denominator. None where it is no such fraction.
std::optional<mpq_class> exact(double entry, double denominator) {
    const double times = entry * denominator, whole = std::round(times);
    if (std::abs(times - whole) > 1e-9 * (1 + std::abs(whole))) return {};
    mpq_class fraction{mpz_class(whole), mpz_class(denominator)};
    fraction.canonicalize();
    return fraction;
}

// Why the form is not the convolution; empty where it is.
std::string wrong_form(std::int64_t outputs, std::int64_t taps) {
    const WinogradForm& form = winograd_form(outputs, taps);
    const auto products = static_cast<std::size_t>(form.products());
    for (std::size_t i = 0; i < static_cast<std::size_t>(outputs); ++i)
        for (std::size_t k = 0; k < static_cast<std::size_t>(taps); ++k)
            for (std::size_t l = 0; l < products; ++l) {
                mpq_class sum = 0;
                for (std::size_t u = 0; u < products; ++u) {
                    const auto a = exact(form.output[i][u], 1), b = exact(form.weights[u][k], form.denominator), c = exact(form.input[u][l], 1);
                    if (!a || !b || !c) return fmt::format("F({}, {}) has an entry that is no fraction", outputs, taps);
                    sum += *a * *b * *c;
                }
                if (sum != (l == i + k ? 1 : 0)) return fmt::format("F({}, {}) is not the convolution: output {}, tap {}, input {}", outputs, taps, i, k, l);
            }
    return {};
}

const ChoiceCall* choice_of(const Rule& rule, const Term& variable) {
    const auto found = std::find_if(rule.choices.begin(), rule.choices.end(), [&](const ChoiceCall& c) { return c.variable == variable.op(); });
    return found == rule.choices.end() ? nullptr : &*found;
}

std::vector<std::int64_t> numbers(const Rule& rule, const Term& t) {
    if (const auto number = t.integer()) return {*number};
    std::vector<std::int64_t> all;
    if (const ChoiceCall* c = choice_of(rule, t))
        for (const Term& v : c->values)
            if (v.integer()) all.push_back(*v.integer());
    return all;
}

// (site ?i) of the list LIST ?n M R, for the M and R of the preparation.
bool is_nest_of(const Rule& rule, const Term& nest, const char* list, const Term& how) {
    const ChoiceCall* c = choice_of(rule, nest);
    const Term& site = rule.left[0].term;
    return c && c->list && c->list->name == list && c->arguments.size() == 3 && c->arguments[0].text == to_string(site[0]) &&
           c->arguments[1].text == to_string(how[0]) && c->arguments[2].text == to_string(how[1]);
}

}  // namespace

bool is_bilinear(const Rule& rule) {
    const Term& right = rule.right[0].term;
    return right.is("prepare", 2) && right[0].is("winograd", 2);
}

RuleVerdict prove_bilinear(const Rule& rule) {
    RuleVerdict verdict;
    const Term &left = rule.left[0].term, &how = rule.right[0].term[0], &row = rule.right[0].term[1];
    const bool whole_site = left.is("site", 1) && left[0].size() == 0 && is_variable(left[0].op());
    const bool a_row = row.is("then", 2) && row[0].is("then", 2) && row[0][0].is("site", 1);
    const bool ours = rule.arrow == Arrow::forward && whole_site && a_row && is_nest_of(rule, row[0][0][0], "winograd-input", how) &&
                      is_nest_of(rule, row[0][1], "winograd-products", how) && is_nest_of(rule, row[1], "winograd-output", how);
    if (!ours) {
        verdict.why = "the three nests are not those of one convolution and one form: (site ?n) becomes its input, products and output for the same numbers";
        return verdict;
    }
    const auto outputs = numbers(rule, how[0]), taps = numbers(rule, how[1]);
    if (outputs.empty() || taps.empty()) verdict.why = "the forms that it uses are not written out";
    for (const std::int64_t m : outputs)
        for (const std::int64_t r : taps) try {
                if (verdict.why.empty()) verdict.why = wrong_form(m, r);
            } catch (const UserError& e) {
                verdict.why = e.diagnostics()[0].message;
            }
    if (!verdict.why.empty()) return verdict;
    verdict.proof = RuleVerdict::Proof::all_sizes;
    // Sums are taken another way unless the rule asks whether it may.
    verdict.reorders_sums = std::none_of(rule.guards.begin(), rule.guards.end(), [](const GuardCall& g) { return g.guard->name == "sums-may-differ"; });
    return verdict;
}

}  // namespace loopegg
