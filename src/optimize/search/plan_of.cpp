#include "optimize/search/plan_of.hpp"

#include "base/error.hpp"
#include "nest/domain/domain.hpp"
#include "nest/net/graph_of_net.hpp"
#include "nest/plan/derive_plan.hpp"
#include "optimize/run/exact_glob.hpp"

namespace loopegg {
namespace {

enum class Anchor { first, last };

// A step of a plan names one of the sites that the rule takes something from.
Plan plan_by(Anchor anchor, const Derivation& derivation) {
    Plan plan;
    for (const NetStep& step : derivation.steps) {
        if (!step.neural || step.sites.empty()) continue;
        Application a;
        a.rule = step.rule;
        for (const auto& [variable, value] : step.with) a.with.emplace(variable, value);
        plan.steps.push_back({exact_glob(anchor == Anchor::first ? step.sites.front() : step.sites.back()), {std::move(a)}});
    }
    return plan;
}

}  // namespace

std::vector<SiteStep> site_steps(const Derivation& derivation, const Graph& before, const NamedRules& rules) {
    std::vector<SiteStep> steps;
    for (const auto& [site, nest] : derivation.nests) {
        auto apply = applications_for(*before.find(site), nest.steps, domain_of(nest.to), rules);
        if (!apply.empty()) steps.push_back({exact_glob(site), std::move(apply)});
    }
    return steps;
}

Plan plan_of(const Derivation& derivation, const Graph& original, const Graph& network, const NamedRules& rules) {
    const Graph before = graph_of(derivation.to, original);
    for (Anchor anchor : {Anchor::first, Anchor::last}) try {
            Plan plan = plan_by(anchor, derivation);
            if (apply_plan(original, plan, rules) != before) continue;
            for (SiteStep& step : site_steps(derivation, before, rules)) plan.steps.push_back(std::move(step));
            if (apply_plan(original, plan, rules) == network) return plan;
        } catch (const UserError&) {  // the site stands for another place, too
        }
    throw InternalFault("no plan makes the network that was extracted");
}

}  // namespace loopegg
