#include "network/random_networks.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "egraph/runner.hpp"
#include "nest/net/net.hpp"
#include "nest/term/facts.hpp"
#include "network/derivation.hpp"
#include "rules/judged.hpp"
#include "rules/limits.hpp"

namespace loopegg {

namespace {
constexpr int max_refused = 1000;  // draws in a row that are no networks
}

// The walks that begin at one nest.
class RandomNetworks::Walks {
public:
    Walks(const Term& nest, const RuleBook& book, const Phase& phase) {
        NestAnalysis::Options options;
        options.proven = !uses_unproved_rules();
        const auto facts = std::make_shared<NestAnalysis>(options);
        graph_.attach(facts);
        root_ = graph_.add(nest);
        graph_.rebuild();
        Runner(graph_, bind_rules(book.rules_of(phase), Binding{facts, {}})).run(limits_of(phase));
        for (const Edge& edge : graph_.edges()) ways_[graph_.find(edge.from)][edge.rule.text()].push_back(graph_.find(edge.to));
    }

    bool any() const { return ways_.contains(graph_.find(root_)); }

    // One step after another; each time, a coin decides whether there is another one.
    DrawnSequence draw(std::mt19937_64& random) const {
        DrawnSequence out;
        ClassId here = graph_.find(root_);
        for (auto from = ways_.find(here); from != ways_.end(); from = ways_.find(here)) {
            const auto& [rule, made] = *std::next(from->second.begin(), static_cast<std::ptrdiff_t>(random() % from->second.size()));
            out.rules.push_back(rule);
            here = made[random() % made.size()];
            if (random() % 2 == 0) break;
        }
        out.nest = graph_.smallest_term(here);
        return out;
    }

private:
    EGraph graph_{EGraph::Options{.proofs = false}};
    ClassId root_;
    std::map<ClassId, std::map<std::string, std::vector<ClassId>>> ways_;  // from a class, by rule
};

RandomNetworks::RandomNetworks(const Graph& original, const RuleBook& book, const Phase& phase, std::uint64_t seed)
    : original_(original), net_(net_of(original)), random_(seed) {
    for (const NetLayer& layer : layers_of(net_)) {
        std::unique_ptr<Walks>& walks = walks_[to_string(layer.nest)];
        if (!walks) walks = std::make_unique<Walks>(layer.nest, book, phase);
        if (!walks->any()) continue;
        changeable_.push_back(layer.site);
        walks_of_[layer.site] = walks.get();
    }
    if (changeable_.empty()) throw UserError("no neural rule of the phase '" + phase.name + "' applies to a site of '" + original.name + "'");
}

RandomNetworks::~RandomNetworks() = default;

DrawnNetwork RandomNetworks::draw() {
    for (int refused = 0;; ++refused) try {
            return draw_once();
        } catch (const UserError&) {  // of all sequences, some leave what no network computes, or domains of too many parts
            if (refused == max_refused) throw;
        }
}

DrawnNetwork RandomNetworks::draw_once() {
    DrawnNetwork out;
    const double share = unit();  // of the sites: networks that are changed a little, and networks that are changed everywhere
    for (const std::string& site : changeable_)
        if (unit() < share) out.sites[site] = walks_of_.at(site)->draw(random_);
    if (out.sites.empty()) {
        const std::string& site = changeable_[random_() % changeable_.size()];
        out.sites[site] = walks_of_.at(site)->draw(random_);
    }
    std::map<std::string, Term> nests;
    for (const auto& [site, sequence] : out.sites) nests[site] = sequence.nest;
    out.graph = graph_of(with_nests(net_, nests), original_);
    return out;
}

}  // namespace loopegg
