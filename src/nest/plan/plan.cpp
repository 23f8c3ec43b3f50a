#include "nest/plan/plan.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr std::array<std::string_view, 4> restores{"repeat", "zero", "pointwise", "propagate"};

Term read_value(const JsonView& view) {
    if (view.value().is_number()) return Term(view.integer());
    try {
        const Term term = parse_term(view.text());
        const auto number = term.integer();
        return number ? Term(*number) : term;  // "007" and "-0" are numbers too, and equal to 7 and 0
    } catch (const UserError& e) {
        view.fail("'" + view.text() + "' is neither an axis nor a number: " + e.diagnostics()[0].message);
    }
}

Application read_application(const JsonView& view) {
    view.only({"rule", "with", "restore", "part", "backwards"});
    Application a;
    a.where = view.where();
    a.rule = view.at("rule").text();
    if (auto with = view.find("with"))
        for (auto& [name, value] : with->members()) {
            if (name.empty() || name[0] != '?') value.fail("a rule's variable begins with '?': '" + name + "'");
            a.with[name] = read_value(value);
        }
    if (auto restore = view.find("restore")) {
        a.restore = restore->text();
        if (std::find(restores.begin(), restores.end(), a.restore) == restores.end())
            restore->fail("unknown restore '" + a.restore + "': expected repeat, zero, pointwise or propagate", did_you_mean(a.restore, restores));
    }
    if (auto part = view.find("part")) a.part = part->integer(0, 1 << 20);
    if (auto backwards = view.find("backwards")) a.backwards = backwards->boolean();
    return a;
}

}  // namespace

Plan read_plan(const SourcePtr& source) { return read_plan(read_json(source)); }

Plan read_plan(const JsonView& root) {
    root.only({"loopegg", "name", "steps"});
    Plan plan;
    for (const JsonView& step : root.at("steps").items()) {
        step.only({"site", "apply"});
        SiteStep s{step.at("site").text(), {}, step.where()};
        for (const JsonView& a : step.at("apply").items()) s.apply.push_back(read_application(a));
        plan.steps.push_back(std::move(s));
    }
    return plan;
}

std::string write_plan(const Plan& plan) {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const SiteStep& s : plan.steps) {
        nlohmann::ordered_json apply = nlohmann::ordered_json::array();
        for (const Application& a : s.apply) {
            nlohmann::ordered_json with = nlohmann::ordered_json::object(), one{{"rule", a.rule}};
            for (auto& [name, value] : a.with) {
                if (auto number = value.integer())
                    with[name] = *number;
                else
                    with[name] = to_string(value);
            }
            one["with"] = with;
            if (!a.restore.empty()) one["restore"] = a.restore;
            if (a.part) one["part"] = *a.part;
            if (a.backwards) one["backwards"] = true;
            apply.push_back(one);
        }
        steps.push_back({{"site", s.site}, {"apply", apply}});
    }
    return nlohmann::ordered_json{{"steps", steps}}.dump(2) + "\n";
}

namespace {

constexpr const char* form = "expected RULE VARIABLE=VALUE ..., for example 'group-axes a=co b=ci g=4'";

// VARIABLE=VALUE. The value is a term of its own where it has parentheses.
struct Setting {
    Position where;
    std::string name;
    SExpr value;
};

std::vector<Setting> settings_of(const std::vector<SExpr>& words) {
    std::vector<Setting> all;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const SExpr& word = words[i];
        const std::size_t equals = word.is_list || word.quoted ? std::string::npos : word.atom.find('=');
        if (word.is_atom("backwards"))
            all.push_back({word.where, word.atom, word});
        else if (equals == std::string::npos || equals == 0)
            throw UserError(Diagnostic{"'" + to_string(word) + "' gives no variable a value", word.where, form});
        else if (equals + 1 < word.atom.size())
            all.push_back({word.where,
                           word.atom.substr(0, equals),
                           {{word.where.source, word.where.offset + equals + 1}, false, false, word.atom.substr(equals + 1), {}}});
        else if (i + 1 < words.size() && words[i + 1].is_list)
            all.push_back({word.where, word.atom.substr(0, equals), words[i + 1]}), ++i;
        else
            throw UserError(Diagnostic{"'" + word.atom + "' has no value", word.where, form});
    }
    return all;
}

Term value_of(const Setting& s) {
    const Term term = to_term(s.value);
    const auto number = term.integer();
    return number ? Term(*number) : term;
}

// The words of a plan in addition to its variables, with the checks of a plan.
void add_word(nlohmann::json& words, const Setting& s) {
    if (s.name == "backwards")
        words["backwards"] = true;
    else if (s.name == "restore")
        words["restore"] = to_string(s.value);
    else if (const auto part = to_term(s.value).integer(); part && *part >= 0)
        words["part"] = *part;
    else
        throw UserError(Diagnostic{"'" + to_string(s.value) + "' is no part of a domain: expected 0, 1, ...", s.value.where, {}});
}

}  // namespace

Application read_typed_application(const SourcePtr& source) {
    const std::vector<SExpr> words = read_sexprs(source);
    if (words.empty() || words[0].is_list || words[0].quoted || words[0].atom.find('=') != std::string::npos)
        throw UserError(Diagnostic{"the name of a rule comes first", words.empty() ? Position{source, 0} : words[0].where, form});
    nlohmann::json special{{"rule", words[0].atom}};
    std::map<std::string, Term> with;
    for (const Setting& s : settings_of(words)) {
        const bool word = s.name == "restore" || s.name == "part" || s.name == "backwards";
        if (word ? special.contains(s.name) : !with.emplace(s.name[0] == '?' ? s.name : "?" + s.name, value_of(s)).second)
            throw UserError(Diagnostic{"'" + s.name + "' is given twice", s.where, {}});
        if (word) add_word(special, s);
    }
    const nlohmann::json plan{{"steps", {{{"site", "*"}, {"apply", {special}}}}}};
    Application a = read_plan(make_source(source->name, plan.dump())).steps.front().apply.front();
    a.with = std::move(with), a.where = words[0].where;
    return a;
}

}  // namespace loopegg
