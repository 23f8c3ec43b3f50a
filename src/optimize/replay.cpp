#include "optimize/replay.hpp"

#include "base/sexpr.hpp"
#include "egraph/proof_check.hpp"
#include "nest/domain.hpp"
#include "optimize/capacity_desk.hpp"

namespace loopegg {
namespace {

// The chain holds together: it starts at the original, each proof begins where the last ended, and it ends at the chosen nest,
// whose domain is the effect that the run claims.
std::string chain_fault(const nlohmann::json& site) {
    std::string at = site.at("original");
    for (const auto& proof : site.at("proofs")) {
        if (proof.at("from") != at) return "a proof does not begin where the one before it ended";
        at = proof.at("to");
    }
    if (at != site.at("chosen").get<std::string>()) return "the proofs do not end at the chosen nest";
    if (domain_text(domain_of(parse_term(at))) != site.at("effect").get<std::string>()) return "the chosen nest has another domain than the effect that is claimed";
    return "";
}

SiteCheck check(const nlohmann::json& site, const ProofRules& exact, const ProofRules& neural) {
    SiteCheck c{site.at("name"), false, chain_fault(site), 0};
    if (!c.why.empty()) return c;
    for (const auto& proof : site.at("proofs")) {
        const ProofVerdict v = check_proof(proof, proof.at("neural").get<bool>() ? neural : exact);
        c.steps += v.steps;
        if (!v.valid) { c.why = v.why; return c; }
    }
    c.valid = true;
    return c;
}

}  // namespace

std::vector<SiteCheck> replay(const nlohmann::json& sites, const RuleBook& book) {
    const std::vector<const Rule*> rules = book.rules();
    ProofRules exact{bind_rules(rules, {}), {}, {}, false, false};
    ProofRules neural = exact;
    neural.allow_neural = true;
    std::vector<SiteCheck> out;
    for (const auto& site : sites) {
        try {
            out.push_back(check(site, exact, neural));
        } catch (const nlohmann::json::exception& e) {
            out.push_back({site.value("name", "?"), false, std::string("sequences.json is not whole: ") + e.what(), 0});
        }
    }
    return out;
}

}  // namespace loopegg
