#include "extract/best_terms.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include <limits>
#include <unordered_map>
#include "base/error.hpp"

namespace loopegg {
namespace {

// A term as a node and, for each child, the rank of the child's term among the best terms of its class.
struct RankedNode {
    double cost, size;
    NodeIndex node;
    std::vector<std::uint32_t> ranks;
    auto key() const { return std::tie(cost, size, node, ranks); }
    bool operator>(const RankedNode& o) const { return key() > o.key(); }
};

// One queue holds the derivations of all classes, cheapest first. When a derivation comes out, every cheaper one is known, so each class's list fills in
// order.
class BestTerms {
public:
    BestTerms(const SerializedEGraph& egraph, ClassIndex root, std::size_t k)
        : egraph_(egraph), root_(root), k_(k), found_(egraph.classes.size()), waiting_(egraph.classes.size()) {}

    std::vector<RankedTerm> run() {
        start();
        while (!queue_.empty() && found_[root_].size() < k_) {
            RankedNode best = queue_.top();
            queue_.pop();
            accept(std::move(best));
        }
        std::vector<RankedTerm> result;
        for (std::uint32_t rank = 0; rank < found_[root_].size(); ++rank) {
            const RankedNode& d = found_[root_][rank];
            result.push_back({d.size <= longest_term ? term(root_, rank) : Term(), d.cost, d.size});
        }
        return result;
    }

private:
    // A derivation that waits for the next-best term of one child.
    struct Waiting {
        std::uint32_t rank;
        NodeIndex node;
        std::vector<std::uint32_t> ranks;
    };

    void start() {
        std::vector<char> reached(egraph_.classes.size(), 0);
        std::vector<ClassIndex> stack{root_};
        reached[root_] = 1;
        std::set<std::tuple<ClassIndex, std::string, std::vector<ClassIndex>>> seen;
        while (!stack.empty()) {
            const ClassIndex c = stack.back();
            stack.pop_back();
            for (NodeIndex n : egraph_.classes[c].nodes) {
                if (!seen.emplace(c, egraph_.nodes[n].op, egraph_.nodes[n].children).second) continue;  // the same node is written twice
                propose(n, std::vector<std::uint32_t>(egraph_.nodes[n].children.size(), 0));
                for (ClassIndex d : egraph_.nodes[n].children)
                    if (!reached[d]) reached[d] = 1, stack.push_back(d);
            }
        }
    }

    // Queues the derivation, or lets it wait for the first child term that is not known yet.
    void propose(NodeIndex n, std::vector<std::uint32_t> ranks) {
        const SerializedNode& node = egraph_.nodes[n];
        double cost = node.cost, size = 1;
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            const auto& list = found_[node.children[i]];
            if (ranks[i] >= list.size()) {
                if (ranks[i] < k_) waiting_[node.children[i]].push_back({ranks[i], n, std::move(ranks)});
                return;
            }
            cost += list[ranks[i]].cost, size += list[ranks[i]].size;
        }
        queue_.push({cost, size, n, std::move(ranks)});
    }

    void accept(RankedNode best) {
        const SerializedNode& node = egraph_.nodes[best.node];
        auto& list = found_[node.eclass];
        if (list.size() >= k_) return;
        list.push_back(best);
        // Each combination of ranks is reached once: by raising the last raised child or one after it.
        std::size_t first = best.ranks.size();
        while (first > 0 && best.ranks[first - 1] == 0) --first;
        for (std::size_t i = first == 0 ? 0 : first - 1; i < best.ranks.size(); ++i) {
            std::vector<std::uint32_t> ranks = best.ranks;
            ++ranks[i];
            propose(best.node, std::move(ranks));
        }
        std::vector<Waiting> woken;
        auto& waiting = waiting_[node.eclass];
        for (std::size_t i = 0; i < waiting.size();)
            if (waiting[i].rank < list.size())
                woken.push_back(std::move(waiting[i])), waiting[i] = std::move(waiting.back()), waiting.pop_back();
            else
                ++i;
        for (Waiting& w : woken) propose(w.node, std::move(w.ranks));
    }

    Term term(ClassIndex root, std::uint32_t root_rank) {
        std::vector<std::pair<ClassIndex, std::uint32_t>> stack{{root, root_rank}};
        while (!stack.empty()) {
            const auto [c, rank] = stack.back();
            const RankedNode& d = found_[c][rank];
            const auto& children = egraph_.nodes[d.node].children;
            std::vector<Term> made;
            for (std::size_t i = 0; i < children.size(); ++i) {
                const auto it = terms_.find({children[i], d.ranks[i]});
                if (it == terms_.end())
                    stack.emplace_back(children[i], d.ranks[i]);
                else
                    made.push_back(it->second);
            }
            if (made.size() < children.size()) continue;
            terms_.try_emplace({c, rank}, Term(egraph_.nodes[d.node].op, std::move(made)));
            stack.pop_back();
        }
        return terms_.at({root, root_rank});
    }

    const SerializedEGraph& egraph_;
    ClassIndex root_;
    std::size_t k_;
    std::vector<std::vector<RankedNode>> found_;
    std::vector<std::vector<Waiting>> waiting_;
    std::priority_queue<RankedNode, std::vector<RankedNode>, std::greater<>> queue_;
    std::map<std::pair<ClassIndex, std::uint32_t>, Term> terms_;
};

}  // namespace

std::vector<RankedTerm> best_terms(const SerializedEGraph& egraph, ClassIndex root, std::size_t k) { return BestTerms(egraph, root, k).run(); }

SmallestTerms::SmallestTerms(const EGraph& graph) : graph_(graph), size_(graph.class_bound(), std::numeric_limits<double>::infinity()) {
    for (bool changed = true; changed;) {  // about as many rounds as the smallest terms are deep
        changed = false;
        for (ClassId c : graph.classes())
            for (NodeId n : graph.nodes(c))
                if (const double s = size_of(graph.node(n)); s < size_[c]) size_[c] = s, changed = true;
    }
}

double SmallestTerms::size_of(const NodeView& node) const {
    double total = 1;
    for (ClassId child : node.children) total += size_[graph_.find(child)];
    return total;
}

Term SmallestTerms::term(ClassId wanted) const {
    std::unordered_map<ClassId, Term> made;
    std::vector<ClassId> stack{graph_.find(wanted)};
    if (size(wanted) == std::numeric_limits<double>::infinity()) throw UserError("this class has no finite term");
    while (!stack.empty()) {
        const ClassId c = stack.back();
        if (made.contains(c)) {
            stack.pop_back();
            continue;
        }
        NodeId best = none;
        for (NodeId n : graph_.nodes(c))
            if (size_of(graph_.node(n)) == size_[c]) {
                best = n;
                break;
            }
        require(best != none, "a class has a node of its own size");
        const NodeView node = graph_.node(best);
        std::vector<Term> children;
        for (ClassId child : node.children) {
            const auto it = made.find(graph_.find(child));
            if (it == made.end())
                stack.push_back(graph_.find(child));
            else
                children.push_back(it->second);
        }
        if (children.size() == node.children.size()) made.emplace(c, Term(node.op, std::move(children))), stack.pop_back();
    }
    return made.at(graph_.find(wanted));
}

}  // namespace loopegg
