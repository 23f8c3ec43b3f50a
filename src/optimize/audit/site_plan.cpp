#include "optimize/audit/site_plan.hpp"

#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/plan/derive_plan.hpp"

namespace loopegg {
namespace {

Term term_at(const nlohmann::json& object, const char* key) { return parse_term(object.at(key).get<std::string>()); }

}  // namespace

std::vector<Application> site_applications(const Node& node, const nlohmann::json& sequence, const NamedRules& rules) {
    std::vector<DerivationStep> steps;
    for (const nlohmann::json& s : sequence.at("steps")) {
        DerivationStep step{s.at("rule"), s.value("kind", "") == "neural", {}, term_at(s, "before"), term_at(s, "after"), s.value("backwards", false)};
        for (const auto& [variable, value] : s.at("with").items()) step.with.emplace_back(variable, parse_term(value.get<std::string>()));
        steps.push_back(std::move(step));
    }
    return applications_for(node, steps, domain_of(term_at(sequence, "chosen")), rules);
}

}  // namespace loopegg
