#include "nest/plan/derive_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/normalise.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/plan/apply_plan.hpp"
#include "nest/plan/site_form.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

// A network of this node alone, to try a plan on.
Graph alone(const Node& node) {
    Graph graph;
    graph.name = "one node";
    Node copy = node;
    for (std::size_t i = 0; i < copy.inputs.size(); ++i) graph.inputs.push_back({copy.inputs[i] = fmt::format("in{}", i), node.input_shapes[i]});
    graph.nodes.push_back(std::move(copy));
    graph.outputs = {node.name};
    complete(graph);
    return graph;
}

// Plans do not see the order of loops, nor how loops are split.
bool plans_see(const DerivationStep& step) {
    return SiteForm(step.before).parts() != SiteForm(step.after).parts() || domain_of(step.before) != domain_of(step.after);
}

std::vector<Application> typed(const std::vector<DerivationStep>& steps, const NamedRules& rules) {
    std::vector<Application> all;
    for (const DerivationStep& step : steps) {
        if (!plans_see(step)) continue;
        Application a;
        a.rule = step.rule, a.backwards = step.backwards;
        const std::vector<std::string> typed = rules.arguments(step.rule, step.backwards);
        for (const auto& [variable, value] : step.with)
            if (std::find(typed.begin(), typed.end(), variable) != typed.end()) a.with.emplace(variable, value);
        all.push_back(std::move(a));
    }
    return all;
}

bool leads_to(const Domain& domain, const Node& node, const std::vector<Application>& applications, const NamedRules& rules) {
    const Graph before = alone(node);
    try {
        return apply_plan(before, {{{node.name, applications}}}, rules) == with_domain(before, node.name, domain);
    } catch (const UserError&) {
        return false;  // a rule refuses these steps: the derivation is of another rule file
    }
}

}  // namespace

std::vector<Application> applications_for(const Node& node, const std::vector<DerivationStep>& steps, const Domain& domain, const NamedRules& rules) {
    if (domain.whole()) return {};
    if (auto applications = typed(steps, rules); leads_to(domain, node, applications, rules)) return applications;
    const Term nest = nest_of(node);
    const Statement statement = statement_of(nest_parts(nest).statement);
    Application whole;
    whole.rule = "restrict-nest";
    whole.with.emplace("?n", nest_from({nest_parts(nest).statement, schedule_of(statement, domain), restore_word(domain.restore)}));
    return {whole};
}

}  // namespace loopegg
