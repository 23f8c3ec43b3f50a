#include "optimize/by_hand/matching_rules.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

bool has_form(const Term& term, std::string_view op) {
    return term.op().text() == op || std::any_of(term.children().begin(), term.children().end(), [&](const Term& t) { return has_form(t, op); });
}

// An exact rule changes a plan only where it cuts the domain.
bool changes_plans(const Rule& rule) {
    return rule.left.size() == 1 && has_form(rule.left.front().term, "nest") && (rule.arrow == Arrow::neural || has_form(rule.right.front().term, "cat"));
}

std::vector<Term> values_of(const Rule& rule, const std::string& variable, const std::vector<Term>& axes) {
    for (const ChoiceCall& c : rule.choices)
        if (c.variable.text() == variable) return c.list ? std::vector<Term>{Term(2), Term(4), Term(8)} : c.values;
    return axes;
}

std::string words_of(const Application& a, const std::vector<std::string>& arguments, std::size_t count) {
    std::string text = a.rule;
    for (std::size_t i = 0; i < count; ++i) text += " " + arguments[i].substr(1) + "=" + to_string(a.with.at(arguments[i]));
    return text;
}

class Matcher {
public:
    Matcher(const Graph& layer, const SiteStep& before, const PlanRules& rules) : layer_(layer), before_(before), rules_(rules) {}

    // One line for each choice of all values but the last, which are listed together.
    std::vector<std::string> lines(const Rule& rule, const std::vector<Term>& axes) {
        rule_ = &rule, axes_ = &axes, arguments_ = rules_.arguments(rule.name, false), lines_.clear();
        Application a;
        a.rule = rule.name;
        choose(a, 0);
        return lines_;
    }

private:
    void choose(Application& a, std::size_t at) {
        if (at == arguments_.size()) {
            if (matches(a)) lines_.push_back(words_of(a, arguments_, at));
            return;
        }
        const std::vector<Term> values = values_of(*rule_, arguments_[at], *axes_);
        if (at + 1 < arguments_.size()) {
            for (const Term& v : values) a.with[arguments_[at]] = v, choose(a, at + 1);
            return;
        }
        std::vector<std::string> taken;
        for (const Term& v : values)
            if (a.with[arguments_[at]] = v; matches(a)) taken.push_back(to_string(v));
        if (!taken.empty()) lines_.push_back(words_of(a, arguments_, at) + " " + arguments_[at].substr(1) + "=" + join(taken, "|"));
    }

    bool matches(const Application& a) const {
        Plan plan{{before_}};
        plan.steps.front().apply.push_back(a);
        try {
            apply_plan(layer_, plan, rules_);
            return true;
        } catch (const UserError&) {  // a refusal is an answer here
            return false;
        }
    }

    const Graph& layer_;
    const SiteStep& before_;
    const PlanRules& rules_;
    const Rule* rule_ = nullptr;
    const std::vector<Term>* axes_ = nullptr;
    std::vector<std::string> arguments_, lines_;
};

}  // namespace

std::vector<std::string> matching_rules(const Graph& layer, const SiteStep& before, const RuleBook& book, const PlanRules& rules) {
    const Node* node = layer.find(before.site);
    require(node != nullptr, "the layer has the site");
    std::vector<Term> axes;
    for (const Iterator& i : statement_of(nest_parts(nest_of(*node)).statement).axes)
        if (i.extent > 1) axes.emplace_back(i.name);
    std::vector<std::string> all;
    Matcher matcher(layer, before, rules);
    for (const Rule* rule : book.rules())
        if (changes_plans(*rule))
            for (std::string& line : matcher.lines(*rule, axes)) all.push_back(std::move(line));
    return all;
}

}  // namespace loopegg
