#include "network/derivation.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "egraph/explain.hpp"
#include "nest/net/net.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

bool is_width(const Term& net) { return net.is("write", 2) || net.is("read", 2) || net.is("lack", 2) || net.is("within", 2); }

// Follows an extraction through the term of the original: rules move widths, and leave rows, joins and streams where they are.
class Follower {
public:
    Follower(NetworkGraph& network, const RuleBook& book, NetRewriter& rewriter) : network_(network), book_(book), rewriter_(rewriter), term_(network.term()) {}

    // `at`: a place in the term as it is so far; `in_original`: the same place in the original, where there are no widths.
    void follow(const Taken& taken, TreePath at, const TreePath& in_original) {
        while (is_width(loopegg::at(term_, at))) at.push_back(1);
        if (taken.edge) {
            step(network_.graph().edges()[*taken.edge], at, in_original);
            return follow(taken.parts.front(), at, in_original);
        }
        const Term here = loopegg::at(term_, at);
        if (here.is("layer", 2)) {
            if (taken.node && !taken.parts.empty() && taken.parts.front().edge) nests_.emplace(net_site(here[0]).name, taken.parts.front());
            return;
        }
        std::size_t next = 0;
        for (std::uint32_t i = 0; i < here.size() && next < taken.parts.size(); ++i) {
            if (!is_net(here[i])) continue;
            TreePath below = at, below_in_original = in_original;
            below.push_back(i), below_in_original.push_back(i);
            follow(taken.parts[next++], std::move(below), below_in_original);
        }
    }

    Derivation finish(const Term& wanted) {
        Derivation out;
        out.from = network_.term(), out.steps = std::move(steps_);
        out.to = rewriter_.normal_form(term_, out.steps);
        const std::vector<NetLayer> layers = layers_of(out.to), chosen = layers_of(wanted);
        require(layers.size() == chosen.size(), "the steps lead to the sites that were extracted");
        for (std::size_t i = 0; i < layers.size(); ++i) {
            require(layers[i].site == chosen[i].site, "the steps lead to the sites that were extracted");
            if (const auto nest = nests_.find(layers[i].site); nest != nests_.end())
                out.nests[layers[i].site] = nest_steps(layers[i].nest, nest->second);
            else
                require(nest_parts(layers[i].nest).statement == nest_parts(chosen[i].nest).statement, "the steps lead to the widths that were extracted");
        }
        return out;
    }

private:
    void step(const Edge& edge, const TreePath& at, const TreePath& in_original) {
        const Rewrite* rule = rewriter_.find(edge.rule.text());
        require(rule != nullptr, "an edge between networks comes from a rule over networks");
        const ChosenValues values = chosen_values(*rule, edge, network_.graph());
        const Term before = loopegg::at(term_, at);
        std::string why;
        const auto after = rewriter_.apply(rule->name, before, values, true, &why);
        if (!after) throw InternalFault("the extraction took " + rule->name + ", which does not apply to the term: " + why);
        steps_.push_back({rule->name, true, at, values, narrowed_sites(before, *after), in_original, {}, edge.guards});
        if (const Term* whole = part_at(network_.term(), in_original)) steps_.back().inside = site_names(*whole);
        term_ = with(term_, at, *after);
    }

    NestDerivation nest_steps(const Term& from, const Taken& taken) {
        NestDerivation out{from, {}, {}, {}, {}};
        EGraph& graph = network_.graph();
        Term now = from;
        const Taken* t = &taken;
        for (; t->edge; t = &t->parts.front()) {
            const Proof neural = explain_edge(graph, graph.edges()[*t->edge]);
            append(out, minimise(explain(graph, now, neural.from), graph), false);
            append(out, neural, true);
            now = neural.to;
        }
        out.to = now;
        return out;
    }

    void append(NestDerivation& out, const Proof& proof, bool neural) {
        if (proof.steps.empty()) return;
        if (rewrites_.empty()) rewrites_ = bind_rules(book_.rules(), {});
        out.proofs.push_back(loopegg::to_json(proof));
        out.proofs.back()["neural"] = neural;
        const std::vector<Term> terms = terms_of(proof, rewrites_);
        for (std::size_t i = 0; i < proof.steps.size(); ++i) {
            const ProofStep& s = proof.steps[i];
            DerivationStep step{s.rule, neural, {}, terms[i], terms[i + 1], s.backwards != s.reversed_rule};
            for (const auto& [variable, term] : s.substitution) step.with.emplace_back(variable.text(), term);
            out.steps.push_back(std::move(step));
        }
    }

    NetworkGraph& network_;
    const RuleBook& book_;
    NetRewriter& rewriter_;
    Term term_;
    std::vector<NetStep> steps_;
    std::map<std::string, Taken> nests_;
    std::vector<Rewrite> rewrites_;
};

}  // namespace

Term with_nests(const Term& net, const std::map<std::string, Term>& nests) {
    if (net.is("layer", 2)) {
        const auto found = nests.find(net_site(net[0]).name);
        return found == nests.end() ? net : Term(net.op(), {net[0], found->second});
    }
    std::vector<Term> children;
    for (const Term& c : net.children()) children.push_back(is_net(c) ? with_nests(c, nests) : c);
    return children.empty() ? net : Term(net.op(), std::move(children));
}

std::vector<std::string> site_names(const Term& net) {
    if (net.is("layer", 2)) return {net_site(net[0]).name};
    std::vector<std::string> names;
    for (const Term& part : net.children())
        if (is_net(part))
            for (std::string& name : site_names(part)) names.push_back(std::move(name));
    return names;
}

ChosenValues chosen_values(const Rewrite& rule, const Edge& edge, const EGraph& graph) {
    ChosenValues values;
    for (const Choice& choice : rule.choices)
        for (const auto& [variable, eclass] : edge.substitution)
            if (variable == choice.variable && !variable.text().starts_with("?(")) values[variable.text()] = graph.smallest_term(eclass);
    return values;
}

Derivation derive(NetworkGraph& network, const RuleBook& book, NetRewriter& rewriter, const FrontPoint& point) {
    Follower follower(network, book, rewriter);
    follower.follow(point.taken, {}, {});
    return follower.finish(point.term);
}

json to_json(const std::vector<NetStep>& steps) {
    json all = json::array();
    for (const NetStep& s : steps) {
        json with = json::object(), guards = json::array();
        for (const auto& [variable, value] : s.with) with[variable] = to_string(value);
        for (const GuardRecord& g : s.guards)
            guards.push_back({{"guard", g.guard}, {"allowed", g.verdict.allowed}, {"why", g.verdict.why}, {"evidence", g.verdict.evidence}});
        json step{{"rule", s.rule}, {"neural", s.neural}, {"at", s.at}};
        if (!s.with.empty()) step["with"] = with;
        if (s.neural) step["sites"] = s.sites, step["guards"] = guards;
        all.push_back(std::move(step));
    }
    return all;
}

}  // namespace loopegg
