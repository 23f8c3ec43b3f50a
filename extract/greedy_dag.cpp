// Greedy extraction for DAG cost: each class remembers the set of classes that its best choice needs, so a part that is used
// twice is paid once. A class takes a node only when the set of the class gets cheaper by that and does not hold the class itself.
#include <algorithm>
#include <deque>
#include <limits>

#include "extract/acyclic.hpp"
#include "extract/extractors.hpp"
#include "extract/reduce.hpp"

namespace loopegg {
namespace {

// The classes below a choice with what each of them costs by itself, sorted by class.
struct CostSet {
    std::vector<std::pair<ClassIndex, double>> parts;
    double total = std::numeric_limits<double>::infinity();
    NodeIndex choice = no_index;
};

class Greedy {
public:
    explicit Greedy(const SerializedEGraph& egraph) : egraph_(egraph), best_(egraph.classes.size()), parents_(egraph.classes.size()) {
        for (NodeIndex n = 0; n < egraph.nodes.size(); ++n)
            for (ClassIndex c : egraph.nodes[n].children)
                if (parents_[c].empty() || parents_[c].back() != n) parents_[c].push_back(n);
    }

    std::vector<NodeIndex> run() {
        std::vector<char> queued(egraph_.nodes.size(), 0);
        std::deque<NodeIndex> queue;
        auto push = [&](NodeIndex n) {
            if (!queued[n]) queued[n] = 1, queue.push_back(n);
        };
        for (NodeIndex n = 0; n < egraph_.nodes.size(); ++n)
            if (egraph_.nodes[n].children.empty()) push(n);
        while (!queue.empty() && held_ < max_parts) {
            const NodeIndex n = queue.front();
            queue.pop_front();
            queued[n] = 0;
            const ClassIndex c = egraph_.nodes[n].eclass;
            if (!improve(n, best_[c])) continue;
            for (NodeIndex p : parents_[c]) push(p);
        }
        std::vector<NodeIndex> choice(best_.size());
        for (std::size_t c = 0; c < choice.size(); ++c) choice[c] = best_[c].choice;
        return choice;
    }

private:
    // Takes node n for its class when that is cheaper by more than rounding, so that the queue becomes empty at last.
    bool improve(NodeIndex n, CostSet& best) {
        const SerializedNode& node = egraph_.nodes[n];
        CostSet found;
        found.parts.emplace_back(node.eclass, node.cost);
        for (ClassIndex child : node.children) {
            if (best_[child].choice == no_index || holds(best_[child], node.eclass)) return false;
            merge(found.parts, best_[child].parts);
        }
        found.total = 0;
        for (const auto& part : found.parts) found.total += part.second;
        if (best.choice != no_index && !(found.total < best.total - 1e-12 * std::max(1.0, best.total))) return false;
        found.choice = n;
        held_ += found.parts.size();
        held_ -= best.parts.size();
        best = std::move(found);
        return true;
    }

    static bool holds(const CostSet& set, ClassIndex c) {
        const auto it = std::lower_bound(set.parts.begin(), set.parts.end(), c, [](const auto& part, ClassIndex key) { return part.first < key; });
        return it != set.parts.end() && it->first == c;
    }

    // Children may remember different costs for one class. The lower cost is nearer to the cost in the final choice.
    void merge(std::vector<std::pair<ClassIndex, double>>& into, const std::vector<std::pair<ClassIndex, double>>& from) {
        merged_.clear();
        std::size_t i = 0, j = 0;
        while (i < into.size() && j < from.size()) {
            if (into[i].first < from[j].first)
                merged_.push_back(into[i++]);
            else if (from[j].first < into[i].first)
                merged_.push_back(from[j++]);
            else
                merged_.emplace_back(into[i].first, std::min(into[i].second, from[j].second)), ++i, ++j;
        }
        merged_.insert(merged_.end(), into.begin() + static_cast<std::ptrdiff_t>(i), into.end());
        merged_.insert(merged_.end(), from.begin() + static_cast<std::ptrdiff_t>(j), from.end());
        into.swap(merged_);
    }

    static constexpr std::size_t max_parts = 20'000'000;  // 320 MB; beyond that, cheapest trees replace missing choices

    const SerializedEGraph& egraph_;
    std::size_t held_ = 0;
    std::vector<CostSet> best_;
    std::vector<std::vector<NodeIndex>> parents_;
    std::vector<std::pair<ClassIndex, double>> merged_;
};

}  // namespace

Extraction extract_greedy_dag(const SerializedEGraph& egraph, const ExtractOptions&) {
    Extraction result;
    // Chains of single nodes would make every set long in vain. The reduced problem has no such chains.
    const Reduced small = reduce(egraph, std::numeric_limits<double>::infinity());
    // A class below may have changed its choice after a set was made. So the choices together may have cycles, which acyclic_choice removes.
    result.choice = acyclic_choice(egraph, small.expand(Greedy(small.egraph).run()));
    result.bound = path_bound(egraph);
    return result;
}

}  // namespace loopegg
