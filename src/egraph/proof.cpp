#include "egraph/proof.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {

const Term* part_at(const Term& term, const TreePath& path) {
    const Term* t = &term;
    for (std::uint32_t i : path) {
        if (i >= t->size()) return nullptr;
        t = &(*t)[i];
    }
    return t;
}

const Term& at(const Term& term, const TreePath& path) {
    const Term* part = part_at(term, path);
    require(part != nullptr, "a place outside of the term");
    return *part;
}

Term with(const Term& term, std::span<const std::uint32_t> path, const Term& part) {
    if (path.empty()) return part;
    std::vector<Term> children(term.children().begin(), term.children().end());
    require(path[0] < children.size(), "a place outside of the term");
    children[path[0]] = with(children[path[0]], path.subspan(1), part);
    return Term(term.op(), std::move(children));
}

Term instance(const Term& pattern, const std::vector<std::pair<Symbol, Term>>& substitution) {
    if (pattern.size() == 0) {
        if (is_variable(pattern.op()))
            for (const auto& [variable, term] : substitution)
                if (variable == pattern.op()) return term;
        return pattern;
    }
    std::vector<Term> children;
    for (const Term& c : pattern.children()) children.push_back(instance(c, substitution));
    return Term(pattern.op(), std::move(children));
}

namespace {

const Rewrite& rule_of(const ProofStep& step, const std::vector<Rewrite>& rules) {
    for (const Rewrite& r : rules)
        if (r.name == step.rule && r.backwards == step.reversed_rule) return r;
    throw InternalFault("a proof uses a rule that is not there");
}

std::string place(const TreePath& path) {
    std::string out;
    for (std::uint32_t i : path) out += (out.empty() ? "" : ".") + std::to_string(i);
    return out.empty() ? "root" : out;
}

}  // namespace

std::vector<Term> terms_of(const Proof& proof, const std::vector<Rewrite>& rules) {
    std::vector<Term> out{proof.from};
    for (const ProofStep& s : proof.steps) {
        Term part;
        if (s.asserted) {
            part = s.substitution[s.backwards ? 0 : 1].second;
        } else {
            const Rewrite& rule = rule_of(s, rules);
            const Rooted& right = rule.right[s.conclusion];
            Term left;
            for (const Rooted& l : rule.left)
                if (l.root == right.root) left = l.term;
            part = instance(s.backwards ? left : right.term, s.substitution);
        }
        out.push_back(with(out.back(), s.at, part));
    }
    return out;
}

std::string to_string(const Proof& proof) {
    std::string out = "   " + to_string(proof.from) + "\n";
    for (const ProofStep& s : proof.steps) {
        std::string with;
        for (const auto& [variable, term] : s.substitution) with += fmt::format("{}{} = {}", with.empty() ? "" : ", ", variable.text(), to_string(term));
        out += fmt::format("{} {} at {}{}", s.backwards ? "<-" : "->", s.rule, place(s.at), with.empty() ? "" : "  with " + with);
        for (const GuardRecord& g : s.guards) out += fmt::format("  {}{}", g.guard, g.verdict.why.empty() ? "" : ": " + g.verdict.why);
        out += "\n";
    }
    return out + "   " + to_string(proof.to) + "\n";
}

nlohmann::json to_json(const Proof& proof) {
    nlohmann::json steps = nlohmann::json::array();
    for (const ProofStep& s : proof.steps) {
        nlohmann::json j{{"rule", s.rule}, {"at", s.at}, {"backwards", s.backwards}};
        if (s.asserted) j["asserted"] = true;
        if (s.reversed_rule) j["reversed_rule"] = true;
        if (s.conclusion) j["conclusion"] = s.conclusion;
        j["with"] = nlohmann::json::object();
        for (const auto& [variable, term] : s.substitution) j["with"][variable.text()] = to_string(term);
        for (const GuardRecord& g : s.guards)
            j["guards"].push_back({{"guard", g.guard}, {"allowed", g.verdict.allowed}, {"why", g.verdict.why}, {"evidence", g.verdict.evidence}});
        for (const Premise& p : s.premises) j["premises"].push_back({{"root", p.root.text()}, {"proof", to_json(p.proof)}});
        steps.push_back(std::move(j));
    }
    return {{"from", to_string(proof.from)}, {"to", to_string(proof.to)}, {"steps", std::move(steps)}};
}

}  // namespace loopegg
