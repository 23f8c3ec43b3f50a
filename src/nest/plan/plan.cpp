#include "nest/plan/plan.hpp"

#include <array>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "base/suggest.hpp"

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

}  // namespace loopegg
