// The rules of a file by the names that plans use.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "nest/plan/apply_plan.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// A neural rule over nests is applied to the nest itself, as a search would apply it: the left side is matched with the axes that the plan names as outermost
// loops, the guards are asked (all but the capacity guard, because a person decided on the plan), and isl checks that the right side restricts the nest. A
// variable of `:for` may have values that its list does not offer. An exact rule leaves the network as it is.
class PlanRules final : public NamedRules {
public:
    // Of two rules of one name, the rule of the earlier book counts.
    explicit PlanRules(std::vector<std::shared_ptr<const RuleBook>> books) : books_(std::move(books)) {}

    std::vector<std::string> names() const override;
    Term apply(const Application& a, const Term& nest) const override;

private:
    Term apply_to(const Rule& rule, const Application& a, const Term& nest) const;

    std::vector<std::shared_ptr<const RuleBook>> books_;
};

// The rules of a rule file, which is judged when it is loaded, and of the shipped files whose rules come after a search: schedules, fusions.
PlanRules plan_rules(const std::filesystem::path& file);

}  // namespace loopegg
