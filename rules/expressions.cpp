#include "rules/expressions.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr int deepest = 50;  // expressions are evaluated once per match; a deeper expression is a mistake

template <class Own, class Common>
std::vector<std::string> names_of(const Own& own, const Common& common) {
    std::vector<std::string> names;
    for (const auto& row : own) names.push_back(row.name);
    for (const auto& row : common) names.push_back(row.name);
    return names;
}

// A hint for a name that the wanted table lacks and another table has.
std::string wrong_table(const Language& language, std::string_view name, std::string_view wanted) {
    if (wanted != "guard" && language.find_guard(name)) return fmt::format("'{}' is a guard: it belongs after :when", name);
    if (wanted != "list" && language.find_list(name)) return fmt::format("'{}' is a list: it belongs after :for", name);
    if (wanted != "function" && language.find_function(name)) return fmt::format("'{}' is a function: it gives a number", name);
    return {};
}

// The kind of all conditions on measures. Binding::capacity answers them.
const GuardKind& measure_guard() {
    static const GuardKind kind = [] {
        GuardKind k;
        k.name = "measure", k.capacity = true;
        return k;
    }();
    return kind;
}

const std::string& parameter(const Signature& s, std::size_t i) { return s.parameters[std::min(i, s.parameters.size() - 1)]; }

}  // namespace

bool looks_like_variable(const SExpr& e) { return !e.is_list && !e.quoted && !e.atom.empty() && e.atom[0] == '?'; }

bool check_variable_name(const SExpr& e, Complaints& complaints) {
    if (e.atom == "?")
        complaints.say(e.where, "a variable needs a name after its '?'");
    else if (e.atom == "?result" || e.atom == "?root")
        complaints.say(e.where, fmt::format("'{}' is a name that rules use themselves", e.atom), "choose another name");
    else
        return true;
    return false;
}

std::string describe(const Signature& s) {
    const std::size_t n = s.parameters.size();
    if (n == 0) return "no arguments";
    return fmt::format("{}{} argument{} ({}{})", s.more ? "at least " : "", n, n == 1 ? "" : "s", join(s.parameters, ", "), s.more ? ", ..." : "");
}

std::optional<std::vector<Expression>> ExpressionReader::arguments(const SExpr& call, const char* what, const Signature& signature, bool words_allowed,
                                                                   int depth) {
    const std::size_t given = call.items.size() - 1, wanted = signature.parameters.size();
    if (given < wanted || (given > wanted && !(signature.more && wanted > 0))) {
        complaints_.say(call.where,
                        fmt::format("{} '{}' takes {}, but {} {} given", what, call.items[0].atom, describe(signature), given, given == 1 ? "is" : "are"));
        return {};
    }
    std::vector<Expression> all;
    bool ok = true;
    for (std::size_t i = 1; i < call.items.size(); ++i)
        if (auto e = expression(call.items[i], words_allowed && parameter(signature, i - 1) != "number", depth + 1))
            all.push_back(std::move(*e));
        else
            ok = false;
    return ok ? std::optional(std::move(all)) : std::nullopt;
}

std::optional<Expression> ExpressionReader::expression(const SExpr& e, bool words_allowed, int depth) {
    Expression result;
    result.where = e.where;
    if (depth > deepest) {
        complaints_.say(e.where, fmt::format("this expression is nested deeper than {}", deepest));
        return {};
    }
    if (!e.is_list) {
        result.text = e.atom;
        if (e.quoted) {
            complaints_.say(e.where, "a string cannot be part of an expression");
            return {};
        }
        if (looks_like_variable(e)) {
            if (!check_variable_name(e, complaints_)) return {};
            result.form = Expression::Form::variable, result.name = Symbol(e.atom);
            return result;
        }
        if (auto number = integer_of(Symbol(e.atom))) {
            result.form = Expression::Form::number, result.number = *number;
            return result;
        }
        if (!words_allowed || e.atom[0] == ':') {
            complaints_.say(e.where, fmt::format("'{}' is no number and no variable", e.atom), fmt::format("a variable is written '?{}'", e.atom));
            return {};
        }
        result.form = Expression::Form::word, result.name = Symbol(e.atom);
        return result;
    }
    if (e.items.empty() || e.items[0].is_list || e.items[0].quoted) {
        complaints_.say(e.where, "an expression begins with the name of a function");
        return {};
    }
    const std::string& name = e.items[0].atom;
    const FunctionKind* function = language_.find_function(name);
    if (!function) {
        std::string hint = wrong_table(language_, name, "function");
        complaints_.say(e.items[0].where, fmt::format("unknown function '{}'", name),
                        hint.empty() ? did_you_mean(name, names_of(language_.functions, common_functions())) : hint);
        return {};
    }
    auto args = arguments(e, "function", function->signature, true, depth);
    if (!args) return {};
    if ((name == "/" || name == "%" || name == "floor-div") && args->at(1).form == Expression::Form::number && args->at(1).number == 0) {
        complaints_.say(args->at(1).where, fmt::format("'{}' by 0 has no value", name));
        return {};
    }
    result.form = Expression::Form::call, result.function = function, result.arguments = std::move(*args);
    result.text = to_string(e);
    return result;
}

std::optional<GuardCall> ExpressionReader::guard(const SExpr& e) {
    if (!e.is_list) {
        const std::string hint = language_.find_guard(e.atom) ? fmt::format("write '({})'", e.atom) : "";
        complaints_.say(e.where, fmt::format("a guard is written in parentheses, but this is '{}'", e.atom), hint);
        return {};
    }
    if (e.items.empty() || e.items[0].is_list || e.items[0].quoted) {
        complaints_.say(e.where, "a guard begins with its name");
        return {};
    }
    const std::string& name = e.items[0].atom;
    if (names_measure(e)) {
        auto condition = read_measure(e, complaints_);
        if (!condition) return {};
        return GuardCall{&measure_guard(), {}, e.where, to_string(*condition), std::move(condition)};
    }
    const GuardKind* guard = language_.find_guard(name);
    if (!guard) {
        std::string hint = wrong_table(language_, name, "guard");
        std::vector<std::string> known = names_of(language_.guards, common_guards());
        for (const MeasureKind& measure : measure_kinds()) known.emplace_back(measure.name);
        complaints_.say(e.items[0].where, fmt::format("unknown guard '{}'", name), hint.empty() ? did_you_mean(name, known) : hint);
        return {};
    }
    auto args = arguments(e, "guard", guard->signature, true);
    if (!args) return {};
    return GuardCall{guard, std::move(*args), e.where, to_string(e)};
}

std::optional<ChoiceCall> ExpressionReader::choice(const SExpr& variable, const SExpr& list) {
    if (!looks_like_variable(variable)) {
        complaints_.say(variable.where, ":for takes a variable first, as in ':for ?k (2 4 8)'",
                        variable.is_list ? "" : fmt::format("did you mean '?{}'?", variable.atom));
        return {};
    }
    if (!check_variable_name(variable, complaints_)) return {};
    ChoiceCall result;
    result.variable = Symbol(variable.atom), result.where = variable.where, result.text = to_string(list);
    if (!list.is_list) {
        complaints_.say(list.where, ":for takes a list in parentheses after its variable",
                        looks_like_variable(list) ? "" : fmt::format("write '({})'", list.atom));
        return {};
    }
    if (list.items.empty()) {
        complaints_.say(list.where, fmt::format("there is nothing for '{}' to choose from", variable.atom));
        return {};
    }
    const SExpr& head = list.items[0];
    const ListKind* kind = head.is_list || head.quoted ? nullptr : language_.find_list(head.atom);
    if (!kind) return written_out(std::move(result), list);
    auto args = arguments(list, "list", kind->signature, true);
    if (!args) return {};
    result.list = kind, result.arguments = std::move(*args);
    return result;
}

// (2 4 8), (zero repeat): whole numbers or words. A variable or an inner list means that a list function was misspelt.
std::optional<ChoiceCall> ExpressionReader::written_out(ChoiceCall result, const SExpr& list) {
    const SExpr& head = list.items[0];
    const bool call = std::any_of(list.items.begin(), list.items.end(), [](const SExpr& e) { return e.is_list || looks_like_variable(e); });
    if (call && !head.is_list && !looks_like_variable(head) && !integer_of(Symbol(head.atom))) {
        std::string hint = wrong_table(language_, head.atom, "list");
        complaints_.say(head.where, fmt::format("unknown list '{}'", head.atom),
                        hint.empty() ? did_you_mean(head.atom, names_of(language_.lists, common_lists())) : hint);
        return {};
    }
    std::set<std::string> seen;
    bool ok = true;
    for (const SExpr& e : list.items) {
        if (e.is_list || e.quoted || looks_like_variable(e))
            complaints_.say(e.where, "a list that is written out holds numbers or words"), ok = false;
        else if (!seen.insert(e.atom).second)
            complaints_.say(e.where, fmt::format("'{}' is in this list already", e.atom)), ok = false;
        else
            result.values.push_back(Term(e.atom));
    }
    return ok ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<ChoiceCall> ExpressionReader::computed(const SExpr& e) {
    auto value = expression(e);
    if (!value) return {};
    ChoiceCall result;
    result.text = to_string(e), result.variable = Symbol("?" + result.text), result.where = e.where;
    result.computed = std::move(*value);
    return result;
}

void collect_variables(const Expression& e, std::vector<Symbol>& into) {
    if (e.form == Expression::Form::variable && std::find(into.begin(), into.end(), e.name) == into.end()) into.push_back(e.name);
    for (const Expression& a : e.arguments) collect_variables(a, into);
}

std::vector<Symbol> variables_of(const std::vector<Expression>& all) {
    std::vector<Symbol> result;
    for (const Expression& e : all) collect_variables(e, result);
    return result;
}

}  // namespace loopegg
