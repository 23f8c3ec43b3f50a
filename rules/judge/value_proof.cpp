#include "rules/judge/value_proof.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include <fmt/format.h>

#include "base/sexpr.hpp"
#include "egraph/rewrite.hpp"
#include "graph/functions.hpp"
#include "nest/term/bilinear.hpp"
#include "rules/judge/bilinear_identity.hpp"
#include "rules/judge/piecewise.hpp"
#include "rules/judge/row_proof.hpp"
#include "rules/judge/value_form.hpp"
#include "rules/rule.hpp"
#include "rules/verdict.hpp"

namespace loopegg {
namespace {

// Proves rules that compute a convolution by bilinear algorithms: the nests that they make are those of one convolution and of one pair of algorithms.

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

// its right side prepares weights for an algorithm
bool is_bilinear(const Rule& rule) {
    const Term& right = rule.right[0].term;
    return right.is("prepare", 2) && right[0].is("bilinear", 2);
}

// Each algorithm that the rule lists must be the correlation, exactly (bilinear_identity.hpp).
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
    verdict.reorders_sums = std::none_of(rule.guards.begin(), rule.guards.end(), [](const GuardCall& g) { return g.guard->name == "allow-reassociation"; });
    return verdict;
}

// A computed number of a side, written out where it is a sum or a product.
Term written_out(const Expression& e) {
    if (e.form == Expression::Form::number) return Term(e.number);
    if (e.form == Expression::Form::call && (e.function->name == "+" || e.function->name == "-" || e.function->name == "*")) {
        Term made = written_out(e.arguments[0]);
        for (std::size_t i = 1; i < e.arguments.size(); ++i) made = Term(e.function->name, {made, written_out(e.arguments[i])});
        return made;
    }
    return Term(e.text);
}

Term substituted(const Term& t, const std::map<std::string, Term>& values) {
    if (t.size() == 0) {
        const auto at = values.find(t.op().text());
        return at == values.end() ? t : at->second;
    }
    std::vector<Term> children;
    for (const Term& child : t.children()) children.push_back(substituted(child, values));
    const auto op = values.find(t.op().text());
    return Term(op == values.end() ? t.op() : op->second.op(), std::move(children));
}

std::optional<Polynomial> number(const Expression& e) {
    if (e.form == Expression::Form::number) return Polynomial(static_cast<long>(e.number));
    if (e.form == Expression::Form::variable) return Polynomial::of(e.name.text());
    if (e.form != Expression::Form::call) return {};
    const std::string& name = e.function->name;
    if (name != "+" && name != "-" && name != "*") return {};
    std::optional<Polynomial> all = number(e.arguments[0]);
    for (std::size_t i = 1; i < e.arguments.size() && all; ++i) {
        const auto next = number(e.arguments[i]);
        if (!next) return {};
        all = name == "+" ? *all + *next : name == "-" ? *all - *next : *all * *next;
    }
    return all;
}

// What guards say of the constants of a rule, such as a scale. Guards that say something else are taken to hold.
struct Conditions {
    SignConditions signs;
    bool all = true;  // no condition says something else
};
Conditions conditions_of(const Rule& rule) {
    static const std::set<std::string> of_statements{"convolution",       "weighted-sum", "has-weights",        "beyond-map",
                                                     "epilogue-function", "output-shape", "allow-reassociation"};
    Conditions found;
    SignConditions& all = found.signs;
    for (const GuardCall& g : rule.guards) {
        const std::string& name = g.guard->name;
        if (of_statements.contains(name)) continue;
        const bool compares = name == "=" || name == "<" || name == "<=" || name == ">" || name == ">=";
        const auto a = compares ? number(g.arguments[0]) : std::nullopt, b = compares ? number(g.arguments[1]) : std::nullopt;
        if (!a || !b) {
            found.all = false;
            continue;
        }
        const Polynomial up = *b - *a, down = *a - *b;
        if (name == "=") all.push_back({up, false}), all.push_back({down, false});
        if (name == "<" || name == "<=") all.push_back({up, name == "<"});
        if (name == ">" || name == ">=") all.push_back({down, name == ">"});
    }
    return found;
}

// Leaves by the place of their operand, so that both sides call the same operand by the same name.
Term by_place(const ValueForm& form) {
    std::map<std::string, Term> places;
    for (std::size_t i = 0; i < form.operands.size(); ++i) places[form.operands[i].name] = Term("x" + std::to_string(i));
    return substituted(form.element, places);
}

using Values = std::map<std::string, double>;

double value_at(const Term& t, const Values& values, const std::string& function) {
    const std::string& op = t.op().text();
    if (t.size() == 0 || op == "leaf") {
        if (const auto known = values.find(to_string(t)); known != values.end()) return known->second;
        const auto constant = decimal(op);
        return constant ? constant->get_d() : 0;
    }
    std::vector<double> operands;
    for (const Term& child : t.children()) operands.push_back(value_at(child, values, function));
    return apply_function(is_variable(t.op()) ? function : op, operands);
}

void collect_leaves(const Term& t, std::vector<std::string>& into) {
    if (t.op().text() == "leaf" || (t.size() == 0 && !decimal(t.op().text()))) {
        if (std::find(into.begin(), into.end(), to_string(t)) == into.end()) into.push_back(to_string(t));
        return;
    }
    for (const Term& child : t.children()) collect_leaves(child, into);
}

// Two moves may undo each other, which values of single elements do not show.
bool is_moved_twice(const Term& t, bool inside = false) {
    const bool moves = t.is("leaf", 2) && t[0].op().text().starts_with("moved by ");
    if (moves && inside) return true;
    return std::any_of(t.children().begin(), t.children().end(), [&](const Term& c) { return is_moved_twice(c, inside || moves); });
}

bool holds(const SignConditions& where, const Values& values) {
    return std::all_of(where.begin(), where.end(), [&](const SignCondition& c) {
        double sum = 0;
        for (const auto& [m, coefficient] : c.p.terms()) {
            double term = coefficient.get_d();
            for (const auto& [symbol, power] : m) {
                const auto at = values.find(symbol);
                for (int i = 0; i < power; ++i) term *= at == values.end() ? 1 : at->second;
            }
            sum += term;
        }
        return c.strict ? sum > 0 : sum >= 0;
    });
}

// For people: an operand by its number, and an unknown nest by its name.
std::string name_of_leaf(const std::string& leaf) {
    const Term t = leaf[0] == '(' ? parse_term(leaf) : Term(leaf);
    if (t.op().text() != "leaf") return leaf;
    if (t.size() == 2 && t[1].op().text() != "leaf" && t[0].op().text()[0] == 'x') return "operand " + t[0].op().text().substr(1);
    return t[0].op().text().starts_with("?") ? "the value of " + t[0].op().text() : "an element " + t[0].op().text();
}

// Values of the operands at which both sides differ, in words.
std::string counterexample(const Term& left, const Term& right, const SignConditions& where) {
    std::vector<double> tried{0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 10, -10, 7, 100, -100};
    std::vector<std::string> leaves;
    collect_leaves(left, leaves), collect_leaves(right, leaves);
    for (const SignCondition& c : where)
        for (const std::string& s : c.p.symbols())
            if (std::find(leaves.begin(), leaves.end(), s) == leaves.end()) leaves.push_back(s);
    for (const SignCondition& c : where)  // and what the conditions compare with
        for (const auto& [m, coefficient] : c.p.terms())
            if (m.empty())
                for (const double offset : {-1.0, 0.0, 1.0}) tried.push_back(offset - coefficient.get_d()), tried.push_back(offset + coefficient.get_d());
    std::mt19937_64 random(5);
    for (const char* function : {"relu6", "tanh", "copy"})
        for (int attempt = 0; attempt < 2000; ++attempt) {
            Values values;
            for (const std::string& l : leaves) values[l] = tried[random() % tried.size()];
            if (!holds(where, values)) continue;
            const double a = value_at(left, values, function), b = value_at(right, values, function);
            if (!std::isfinite(a) || !std::isfinite(b) || std::abs(a - b) <= 1e-6 * (1 + std::abs(a) + std::abs(b))) continue;
            std::string text;
            for (const auto& [leaf, v] : values) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name_of_leaf(leaf), v);
            return fmt::format("{}: {} on the left, {} on the right", text, a, b);
        }
    return {};
}

// One way to choose from the lists of words and numbers that are written out.
RuleVerdict prove(const Rule& rule) {
    RuleVerdict verdict;
    try {
        ValueReader reader(rule);
        const ValueForm left = reader.left(), right = reader.right();
        const auto same_kind = [](const ValueOperand& a, const ValueOperand& b) { return a.kind == b.kind; };
        if (!std::equal(left.operands.begin(), left.operands.end(), right.operands.begin(), right.operands.end(), same_kind)) {
            verdict.why = "takes other operands on the right than on the left";
            return verdict;
        }
        const Term before = by_place(left), after = by_place(right);
        const auto [where, all] = conditions_of(rule);
        const auto a = piecewise(before), b = piecewise(after);
        if (a && b && same_function(*a, *b, where)) {
            verdict.proof = RuleVerdict::Proof::all_sizes;
            return verdict;
        }
        const bool elementwise = !is_moved_twice(before) && !is_moved_twice(after);
        verdict.why = "computes something else", verdict.counterexample = elementwise ? counterexample(before, after, where) : "";
        if (verdict.counterexample.empty())
            verdict.why = "both sides are not known to be equal over the real numbers";
        else if (all)
            verdict.proof = RuleVerdict::Proof::refuted;
    } catch (const NoValueForm& none) {
        verdict.why = none.what();
    }
    return verdict;
}

std::vector<std::map<std::string, Term>> choices_of(const Rule& rule) {
    std::vector<std::map<std::string, Term>> all{{}};
    for (const ChoiceCall& c : rule.choices) {
        if (c.computed)
            for (auto& one : all) one[c.variable.text()] = written_out(*c.computed);
        std::vector<std::map<std::string, Term>> more;
        for (const auto& one : all)
            for (const Term& v : c.values) {
                more.push_back(one);
                more.back()[c.variable.text()] = v;
            }
        if (!c.values.empty()) all = std::move(more);
    }
    return all;
}

}  // namespace

RuleVerdict prove_value_rule(const Rule& rule) {
    if (is_bilinear(rule)) return prove_bilinear(rule);
    if (rule.arrow == Arrow::forward && is_row_rule(rule)) return prove_row_rule(rule);
    if (rule.arrow == Arrow::neural) {
        RuleVerdict verdict;
        verdict.why = "a neural rule restricts one nest, not a row of sites";
        return verdict;
    }
    RuleVerdict verdict;
    for (const bool backwards : {false, true}) {
        if (backwards && rule.arrow != Arrow::both) break;
        for (const auto& values : choices_of(rule)) {
            Rule one = rule;
            if (backwards) std::swap(one.left, one.right);
            one.left[0].term = substituted(one.left[0].term, values), one.right[0].term = substituted(one.right[0].term, values);
            verdict = prove(one);
            if (!verdict.accepted()) return verdict;
        }
    }
    return verdict;
}

}  // namespace loopegg
