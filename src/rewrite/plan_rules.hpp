// The rules of a file by the names that plans use.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "nest/plan/apply_plan.hpp"
#include "rewrite/net_rewriter.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// A rule over nests is applied as a search applies it: its left side is matched with the axes that the plan names as outermost loops, and its right side is
// made with the values of the plan. A variable of `:for` may have a value that its list does not offer. Where the rule computes the number of values that are
// kept, ?w may give that number itself. A rule over plain nests is applied inside a restore too.
// The guards of a neural rule are asked, but for the capacity guard, because a person decided on the plan, and for guards that only keep a search small. isl
// checks that the right side restricts the nest.
// A rule over networks is applied to the term of the network (nest/net/net.hpp), where its left side matches.
// Of exact rules, those that cut the domain make parts of it, and isl checks that the parts together visit what was visited. A rule that joins parts cuts the
// domain backwards. Every other exact rule leaves the network as it is.
class PlanRules final : public NamedRules {
public:
    // Of two rules of one name, the rule of the earlier book counts.
    explicit PlanRules(std::vector<std::shared_ptr<const RuleBook>> books);

    std::vector<std::string> names() const override;
    std::string source() const override;
    std::vector<std::string> arguments(const std::string& rule, bool backwards) const override;
    Term apply(const Application& a, const Term& nest) const override;
    bool over_networks(const std::string& rule) const override;
    std::optional<Graph> apply(const Application& a, const Graph& graph, const std::string& site) const override;

private:
    const Rule* find(const std::string& name) const;

    std::vector<std::shared_ptr<const RuleBook>> books_;
    std::shared_ptr<NetRewriter> networks_;
};

// The rules of a rule file, which is judged when it is loaded, and of the shipped files whose rules come after a search: schedules, fusions.
PlanRules plan_rules(const std::filesystem::path& file);
// Those of the shipped file for discovery, by whose names plans are written.
const PlanRules& shipped_plan_rules();

}  // namespace loopegg
