#include "optimize/network_proof.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "egraph/explain.hpp"
#include "egraph/proof_check.hpp"
#include "egraph/runner.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/net.hpp"

namespace loopegg {
namespace {

using nlohmann::json;
using Path = std::vector<std::uint32_t>;

Path upto(const Path& path, std::size_t length) { return {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(length)}; }
bool begins(const Path& path, const Path& with) { return path.size() >= with.size() && std::equal(with.begin(), with.end(), path.begin()); }

class ShapeProof {
public:
    ShapeProof(const Graph& original, const RuleBook& book, const Verdict& verdict) : book_(book), verdict_(verdict), net_(net_of(original)) {
        out_ = {{"original", to_string(net_.term)}, {"proofs", json::array()}, {"steps", json::array()}, {"unproven", json::array()}};
    }

    void group(const std::string& site, std::int64_t groups) {
        const auto place = net_.place.find(site);
        if (place == net_.place.end()) return unproven("group-axes", site);
        Path nest = place->second;
        nest.push_back(0);
        step("group-axes", site, nest, {{"?g", Term(groups)}}, {});
    }

    // Drops the second part of the join whose second part ends in the site.
    void drop(const std::string& site) {
        const auto place = net_.place.find(site);
        for (std::size_t n = place == net_.place.end() ? 0 : place->second.size(); n-- > 0;) {
            const Term& here = at(net_.term, upto(place->second, n));
            if (!here.is("join", 3)) continue;
            if (place->second[n] != 2) break;
            const Path join = upto(place->second, n);
            return step("drop-branch", site, join, {}, [&](Path& path) { shift(path, join, {2}, {2, 0}); });
        }
        unproven("drop-branch", site);
    }

    // Goes from the site up to the row whose first part ends in the site and whose second part reads it, and narrows what lies between them.
    void narrow(const std::string& site, std::int64_t width) {
        const auto place = net_.place.find(site);
        const std::map<std::string, Term> with{{"?w", Term(width)}};
        for (std::size_t n = place == net_.place.end() ? 0 : place->second.size(); n-- > 0;) {
            const Path here = upto(place->second, n);
            const Term& term = at(net_.term, here);
            if (term.is("join", 3) && !term[0].is("add", 0) && place->second[n] == 2)
                return step("narrow-branch", site, here, with, [&](Path& path) { shift(path, here, {2}, {2, 1}); });
            if (!term.is("row", 2) || place->second[n] != 0) continue;
            if (term[0].is("stream", 1)) {  // the row before this one holds the stream's first writer
                if (n == 0 || place->second[n - 1] != 1) break;
                return narrow_stream(site, upto(place->second, n - 1), with);
            }
            // Operators on each channel belong to what comes before them, and a value that passes by a branch belongs to the stream.
            if (!has_sites(term[1]) || passes_through(term[0])) continue;
            if (term[1].is("row", 2) && term[1][0].is("stream", 1)) return narrow_stream(site, here, with);
            return step("narrow-width", site, here, with, [&](Path& path) { shift(path, here, {0}, {0, 1}), shift(path, here, {1}, {1, 1}); });
        }
        unproven("narrow-stream", site);
    }

    json finish() {
        out_["chosen"] = to_string(net_.term);
        return std::move(out_);
    }

private:
    // Updates a path: what was at `here` + `from` is now at `here` + `to`.
    static bool shift(Path& path, const Path& here, const Path& from, const Path& to) {
        Path old = here, now = here;
        old.insert(old.end(), from.begin(), from.end()), now.insert(now.end(), to.begin(), to.end());
        if (!begins(path, old)) return false;
        now.insert(now.end(), path.begin() + static_cast<std::ptrdiff_t>(old.size()), path.end());
        path = std::move(now);
        return true;
    }

    void narrow_stream(const std::string& site, const Path& here, const std::map<std::string, Term>& with) {
        step("narrow-stream", site, here, with, [&](Path& path) {
            shift(path, here, {0}, {0, 1}) || shift(path, here, {1, 0, 0}, {1, 0, 0, 1}) || shift(path, here, {1, 1}, {1, 1, 1});
        });
    }

    void unproven(const char* rule, const std::string& site) { out_["unproven"].push_back({{"rule", rule}, {"site", site}}); }

    // The engine applies the rule at `here`, and its proof is kept.
    void step(const char* name, const std::string& site, const Path& here, const std::map<std::string, Term>& with, const std::function<void(Path&)>& moved) {
        const Rule* rule = book_.find_rule(name);
        const Term before = at(net_.term, here);
        std::optional<Proof> proof = rule ? applied(*rule, before, with) : std::nullopt;
        if (!proof) return unproven(name, site);
        const Term after = loopegg::with(net_.term, here, proof->to);
        Proof whole{net_.term, after, proof->steps};
        for (ProofStep& s : whole.steps) s.at.insert(s.at.begin(), here.begin(), here.end());
        json j = to_json(whole);
        j["neural"] = true;
        out_["proofs"].push_back(std::move(j));
        json values = json::object();
        for (const auto& [variable, value] : with) values[variable] = to_string(value);
        out_["steps"].push_back({{"rule", name}, {"kind", "neural"}, {"site", site}, {"with", values}});
        net_.term = after;
        if (moved)
            for (auto& [of, path] : net_.place) moved(path);
    }

    std::optional<Proof> applied(const Rule& rule, const Term& before, const std::map<std::string, Term>& with) const {
        EGraph graph(EGraph::Options{.proofs = true});
        Binding binding;
        binding.facts = book_.language->make_facts();
        graph.attach(binding.facts);
        binding.capacity = [&](const EGraph&, std::span<const CapacityProposal> proposals) {
            return std::vector<Verdict>(proposals.size(), Verdict{true, verdict_.why, {}});
        };
        const ClassId root = graph.add(before);
        Runner runner(graph, bind_rule(rule, binding));
        RunOptions once;
        once.limits.iterations = 1;
        runner.run(once);
        for (const Edge& edge : graph.edges()) {
            if (graph.find(edge.from) != graph.find(root)) continue;
            Proof proof = explain_edge(graph, edge);
            const auto& found = proof.steps.at(0).substitution;
            const bool right = std::all_of(with.begin(), with.end(), [&](const auto& wanted) {
                return std::any_of(found.begin(), found.end(), [&](const auto& f) { return f.first.text() == wanted.first && f.second == wanted.second; });
            });
            if (right && proof.from == before) return proof;
        }
        return {};
    }

    const RuleBook& book_;
    const Verdict& verdict_;
    Net net_;
    json out_;
};

}  // namespace

json prove_shape(const Graph& original, const ShapeSpace& space, const NetworkShape& shape, const RuleBook& book, const Verdict& verdict) {
    ShapeProof proof(original, book, verdict);
    for (const auto& [site, groups] : shape.groups)
        if (groups > 1) proof.group(site, groups);
    for (const ShapeSpace::Depth& d : space.branches())
        if (shape.dropped.contains(d.branch.site)) proof.drop(d.branch.site);
    for (const auto& [site, width] : space.narrowed(shape)) proof.narrow(site, width);
    return proof.finish();
}

std::string network_fault(const json& network, const json& sites, const RuleBook& book, std::size_t& steps) {
    if (!network.at("unproven").empty())
        return "no rule says " + network.at("unproven")[0].at("rule").get<std::string>() + " at '" + network.at("unproven")[0].at("site").get<std::string>() +
               "'";
    const std::vector<const Rule*> rules = book.rules();
    const ProofRules neural{bind_rules(rules, {}), {}, {}, false, true};
    std::string now = network.at("original");
    for (const auto& proof : network.at("proofs")) {
        if (proof.at("from") != now) return "a proof does not begin where the one before it ended";
        const ProofVerdict v = check_proof(proof, neural);
        steps += v.steps;
        if (!v.valid) return v.why;
        now = proof.at("to");
    }
    if (now != network.at("chosen").get<std::string>()) return "the proofs do not end at the chosen network";
    std::multiset<std::string> left, run;
    for (const NetLayer& l : layers_of(parse_term(now)))
        if (l.outputs > 0) left.insert(to_string(l.statement()));
    for (const auto& site : sites) run.insert(to_string(nest_parts(parse_term(site.at("original").get<std::string>())).statement));
    if (left != run) return "what the rules leave of the sites is not what the network starts from";
    return "";
}

}  // namespace loopegg
