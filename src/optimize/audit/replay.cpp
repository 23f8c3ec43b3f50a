#include "optimize/audit/replay.hpp"

#include "base/sexpr.hpp"
#include "egraph/proof_check.hpp"
#include "graph/domain_sets.hpp"
#include "nest/domain/bilinear_nests.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/judge/isl_judge.hpp"
#include "nest/plan/derive_plan.hpp"
#include "nest/term/blockwise.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/value.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "rules/judge/bilinear_identity.hpp"

namespace loopegg {
namespace {

// Checks the chain of proofs: it must start at the original, each proof must begin where the one before ended, and the last must end at the chosen nest,
// whose domain must have the effect that the run claims.
std::string chain_fault(const nlohmann::json& site) {
    std::string at = site.at("original");
    for (const auto& proof : site.at("proofs")) {
        if (proof.at("from") != at) return "a proof does not begin where the one before it ended";
        at = proof.at("to");
    }
    if (at != site.at("chosen").get<std::string>()) return "the proofs do not end at the chosen nest";
    if (domain_text(domain_of(parse_term(at))) != site.at("effect").get<std::string>())
        return "the chosen nest has another domain than the effect that is claimed";
    return "";
}

std::int64_t instances(const Term& nest) { return instance_count(domain_of(nest), graph_axes(statement_of(plain_statement(nest_parts(nest).statement)))); }

// What a schedule of the chosen nest must compute: a statement, and loops that visit the right instances.
struct Expected {
    Term statement, loops;
};
// The chosen nest itself; where a convolution of its own brings channels back, the statement with only the channels that are computed.
Expected expected(const Term& chosen) {
    const NestParts parts = nest_parts(chosen);
    const Term statement = plain_statement(parts.statement);
    const Domain domain = domain_of(chosen);
    if (domain.restore != Restore::pointwise) return {statement, parts.schedule};
    const NarrowedDomain narrow = narrowed(domain, graph_axes(statement_of(statement)));
    const Term smaller = with_size(statement, "co", Term(narrow.kept));
    return {smaller, schedule_of(statement_of(smaller), narrow.rest)};
}

std::string row_fault(const Term& chosen, const Term& row);

// Checks a nest that computes a chain of nodes block by block: the chosen nest must be the first product of the chain, and every part has a schedule.
std::string block_fault(const Term& chosen, const Term& stmt) {
    const Blockwise blocks = blockwise_of(stmt);
    const Term first = plain_statement(blocks.parts.front().statement.term);
    if (Term("matmul", {Term(blocks.matrices), Term(blocks.rows), Term(blocks.columns), first[3]}) != plain_statement(nest_parts(chosen).statement))
        return "the blocks that run are not those of the chosen nest";
    for (const BlockPart& part : blocks.parts)
        if (auto fault = isl_judge(complete(part.nest))) return "the schedule of a part of the blocks is none: " + *fault;
    return "";
}

// Checks that the schedule that runs is a schedule of the chosen nest: isl, which knows no rule, must find the same instances and no reversed dependence.
// Where the restriction became an ordinary operator (groups, a smaller kernel), the schedule must visit all of that operator, and as many instances.
std::string schedule_fault(const nlohmann::json& site) {
    if (!site.contains("schedule")) return "";
    const Term chosen = complete(parse_term(site.at("chosen").get<std::string>()));
    if (const Term row = parse_term(site.at("schedule").get<std::string>()); row.is("prepare", 2)) return row_fault(chosen, row);
    const Term schedule = complete(parse_term(site.at("schedule").get<std::string>()));
    if (is_blockwise(schedule[0])) return block_fault(chosen, schedule[0]);
    const NestParts runs = nest_parts(schedule);
    const Expected was = expected(chosen);
    const bool same_statement = plain_statement(runs.statement) == was.statement;
    const bool same = same_statement ? isl_same_domain(statement_of(runs.statement), was.loops, runs.schedule) : instances(chosen) == instances(schedule);
    if (!same) return "the schedule that runs does not visit the instances of the chosen nest";
    if (auto fault = isl_judge(schedule, {.may_restrict = same_statement})) return "the schedule that runs is none: " + *fault;
    return "";
}

// Checks nests in a row: they must be schedules of the nests that the row's bilinear algorithms make from the chosen nest. Where the restriction became
// groups of an ordinary convolution, they are the nests of that convolution, whose products must keep as many pairs of channels.
std::string row_fault(const Term& chosen, const Term& row) {
    const auto pair = bilinear_pair(row[0]);
    if (!pair) return "no rule makes a row of nests by " + to_string(row[0]);
    for (const BilinearForm& form : {pair->down, pair->along})
        if (const auto fault = bilinear_fault(form)) return to_string(to_term(form)) + " is not the correlation: " + fault->why;
    const Expected was = expected(chosen);
    const Domain domain = domain_of(chosen);
    const bool pointwise = domain.restore == Restore::pointwise;  // another site brings these outputs back
    const Term nest = nest_from({was.statement, was.loops, pointwise ? "" : restore_word(domain.restore)});
    const auto made = bilinear_nests(nest, *pair);
    if (!made) return "the chosen nest has no row of nests by " + to_string(row[0]);
    const std::vector<Term> wanted{made->input, made->products, made->output};
    std::vector<Term> runs;
    for (const Term& run : nests_of(row[1])) runs.push_back(complete(run));
    if (runs.size() != wanted.size()) return "the row has not the nests of " + to_string(row[0]);
    const bool grouped = plain_statement(nest_parts(runs[1]).statement) != plain_statement(nest_parts(wanted[1]).statement);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const NestParts is = nest_parts(runs[i]), should = nest_parts(wanted[i]);
        const std::string which = "nest " + std::to_string(i + 1) + " of the row";
        const Statement s = statement_of(is.statement);
        const bool same = i == 1 && grouped
                              ? instances(runs[i]) == instances(wanted[i])
                              : plain_statement(is.statement) == plain_statement(should.statement) && isl_same_domain(s, should.schedule, is.schedule);
        if (!same || is.restore != should.restore) return which + " does not visit what it should";
        if (auto fault = isl_judge(runs[i], {.may_restrict = true})) return "the schedule of " + which + " is none: " + *fault;
    }
    return "";
}

// The number of channels that the chosen nest computes in all its groups.
std::int64_t restoring_inputs(const Statement& statement, const Domain& domain) {
    const NarrowedDomain narrow = narrowed(domain, graph_axes(statement));
    return statement.buffers[0].shape[1] / narrow.channels * narrow.kept;
}

// A nest that is restored pointwise runs as two nests. Checks the second: it must be a schedule of a 1x1 convolution, or of a product, that makes all
// channels from those that the chosen nest computes.
std::string restoring_fault(const nlohmann::json& site) {
    const Term chosen = complete(parse_term(site.at("chosen").get<std::string>()));
    const Statement statement = statement_of(plain_statement(nest_parts(chosen).statement));
    const Domain domain = domain_of(chosen);
    if (domain.restore != Restore::pointwise) return site.contains("restoring") ? "a second nest runs where nothing is restored by one" : "";
    if (!site.contains("schedule")) return "";
    if (!site.contains("restoring")) return "the convolution that brings its channels back does not run";
    const Shape& o = statement.buffers[0].shape;
    const auto size = [&](std::size_t d) { return Term(o[d]); };
    const Term one(1), none(0), inputs(restoring_inputs(statement, domain));
    const Term wanted = o.size() == 2 ? Term("linear", {size(0), size(1), inputs})
                                      : Term("conv2d", {size(0), one, size(1), inputs, size(2), size(3), one, one, one, one, none, none, one, one});
    const Term runs = complete(parse_term(site.at("restoring").get<std::string>()));
    if (plain_statement(nest_parts(runs).statement) != wanted) return "the nest that brings its channels back is not '" + to_string(wanted) + "'";
    if (auto fault = isl_judge(runs)) return "the schedule of the nest that brings its channels back is none: " + *fault;
    return "";
}

SiteCheck check(const nlohmann::json& site, const ProofRules& exact, const ProofRules& neural) {
    SiteCheck c{site.at("name"), false, chain_fault(site), 0};
    if (!c.why.empty()) return c;
    for (const auto& proof : site.at("proofs")) {
        const ProofVerdict v = check_proof(proof, proof.at("neural").get<bool>() ? neural : exact);
        c.steps += v.steps;
        if (!v.valid) {
            c.why = v.why;
            return c;
        }
    }
    c.why = schedule_fault(site);
    if (c.why.empty()) c.why = restoring_fault(site);
    c.valid = c.why.empty();
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
