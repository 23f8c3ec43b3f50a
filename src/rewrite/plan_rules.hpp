// The rules of a file by their names, as plans type them.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "nest/plan/apply_plan.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// A neural rule over nests is applied to the nest itself, as a search would: its left side is matched with the axes that the plan names as its outermost loops,
// its guards are asked (all but the capacity guard: a plan is a person's word), and isl finds that the right side
// restricts. A variable of `:for` may have values
// that its list does not offer. An exact rule leaves the network as it is.
class PlanRules final : public NamedRules {
public:
    // Of two rules of one name, that of the earlier book.
    explicit PlanRules(std::vector<std::shared_ptr<const RuleBook>> books) : books_(std::move(books)) {}

    std::vector<std::string> names() const override;
    Term apply(const Application& a, const Term& nest) const override;

private:
    Term apply_to(const Rule& rule, const Application& a, const Term& nest) const;

    std::vector<std::shared_ptr<const RuleBook>> books_;
};

// Of a rule file, which is judged when it is loaded, and of the shipped ones whose rules come after a search: schedules, fusions.
PlanRules plan_rules(const std::filesystem::path& file);

}  // namespace loopegg
