#include "egraph/analysis.hpp"

#include "egraph/egraph.hpp"

namespace loopegg {
namespace {

std::string words(const std::string& analysis, const std::string& rule, const Term& a, const Term& b, const std::string& why, const std::string& proof) {
    std::string out = (rule.empty() ? std::string("a merge") : "rule '" + rule + "'") + " makes " + to_string(a) + " and " + to_string(b) + " equal, but " +
                      why + " (" + analysis + ")";
    if (!proof.empty()) out += "\n" + proof;
    return out;
}

constexpr const char* missed_by_the_judge = "the rule is wrong, although its judge accepted it: take it out of its file, and please report it";

}  // namespace

InvariantBroken::InvariantBroken(const Analysis& by, std::string rule_, Term a_, Term b_, std::string why_, std::string proof_)
    : UserError(Diagnostic{words(std::string(by.name()), rule_, a_, b_, why_, proof_), {}, by.rules_were_judged() ? missed_by_the_judge : ""}),
      analysis(by.name()),
      rule(std::move(rule_)),
      a(std::move(a_)),
      b(std::move(b_)),
      why(std::move(why_)),
      proof(std::move(proof_)) {}

void refuse_node(const EGraph& graph, const Analysis& analysis, ClassId in, const NodeView& node, const std::string& why) {
    std::vector<Term> children;
    for (ClassId c : node.children) children.push_back(graph.smallest_term(c));
    const Term a = graph.smallest_term(in), b(node.op, std::move(children));
    throw InvariantBroken(analysis, graph.current_rule().text(), a, b, why);
}

std::optional<std::int64_t> NumberAnalysis::fact_of(const EGraph&, const NodeView& node) const {
    return node.children.empty() ? integer_of(node.op) : std::nullopt;
}

bool NumberAnalysis::join_facts(std::optional<std::int64_t>& into, const std::optional<std::int64_t>& other) const {
    if (into || !other) return false;
    into = other;
    return true;
}

std::optional<std::string> NumberAnalysis::conflict_of(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) const {
    if (a && b && *a != *b) return "they are two different numbers, " + std::to_string(*a) + " and " + std::to_string(*b);
    return std::nullopt;
}

}  // namespace loopegg
