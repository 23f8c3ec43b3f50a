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

}  // namespace

InvariantBroken::InvariantBroken(std::string analysis_, std::string rule_, Term a_, Term b_, std::string why_, std::string proof_)
    : UserError(words(analysis_, rule_, a_, b_, why_, proof_)),
      analysis(std::move(analysis_)),
      rule(std::move(rule_)),
      a(std::move(a_)),
      b(std::move(b_)),
      why(std::move(why_)),
      proof(std::move(proof_)) {}

void refuse_node(const EGraph& graph, const Analysis& analysis, ClassId in, const NodeView& node, const std::string& why) {
    std::vector<Term> children;
    for (ClassId c : node.children) children.push_back(graph.smallest_term(c));
    const Term a = graph.smallest_term(in), b(node.op, std::move(children));
    throw InvariantBroken(std::string(analysis.name()), graph.current_rule().text(), a, b, why + missed_by_judge(analysis));
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
