// Exact extraction by integer programming: one variable per node and per class, cycles forbidden where the answer runs into them.
//
// For a set S of classes around a cycle and any class j of S, an acyclic choice that holds j also holds a node of S with no child
// in S (follow the children from j inside S: the way must end). So the sum of such nodes >= class j. These rows (loop formulas) are
// added when a fractional or whole answer breaks them; every program solved on the way is a relaxation, so its bound counts.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "extract/acyclic.hpp"
#include "extract/cycles.hpp"
#include "extract/extractors.hpp"
#include "extract/mip.hpp"
#include "extract/reduce.hpp"

namespace loopegg {
namespace {

class Clock {
public:
    explicit Clock(double seconds)
        : end_(std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e8)))) {}
    double left() const { return std::chrono::duration<double>(end_ - std::chrono::steady_clock::now()).count(); }

private:
    std::chrono::steady_clock::time_point end_;
};

class Ilp {
public:
    Ilp(const SerializedEGraph& egraph, const ExtractOptions& options) : original_(egraph), clock_(options.seconds) {}

    Extraction run() {
        result_.choice = cheapest_trees(original_).choice;
        result_.check(original_);
        offer(find_extractor("greedy-dag").run(original_, {}).choice);
        result_.bound = path_bound(original_);
        if (proves(result_.bound, result_.cost)) return std::move(result_);
        shrink();
        if (small_.egraph.nodes.size() == small_.egraph.classes.size()) return finish_single();
        build();
        tighten();
        search();
        return std::move(result_);
    }

private:
    // Keeps a choice over the original when it is the best so far.
    void offer(const std::vector<NodeIndex>& wanted) {
        Extraction tried;
        tried.choice = acyclic_choice(original_, wanted);
        tried.check(original_);
        if (tried.cost < result_.cost) result_.choice = std::move(tried.choice), result_.cost = tried.cost;
    }

    void raise_bound(double bound) {
        if (whole_ && std::isfinite(bound)) bound = std::ceil(bound - 1e-6 * std::max(1.0, std::abs(bound)));
        result_.bound = std::max(result_.bound, std::min(bound, result_.cost));
    }

    void shrink() {
        small_ = reduce(original_, result_.cost);
        whole_ = std::all_of(small_.egraph.nodes.begin(), small_.egraph.nodes.end(),
                             [](const SerializedNode& n) { return n.cost == std::floor(n.cost) && n.cost < 1e12; });
        parts_ = cyclic_parts(small_.egraph);
    }

    // Every class has one node left, and these nodes are the answer.
    Extraction finish_single() {
        std::vector<NodeIndex> choice;
        for (const SerializedClass& c : small_.egraph.classes) choice.push_back(c.nodes.front());
        offer(small_.expand(choice));
        result_.bound = result_.cost;
        return std::move(result_);
    }

    // Outside of cycles, whole values of the classes imply whole values of the nodes (a class takes its cheapest node whose children are chosen), so only
    // the classes need to be whole-number variables. That makes the search several times shorter.
    void build() {
        const SerializedEGraph& g = small_.egraph;
        column_of_class_.resize(g.classes.size());
        column_of_node_.resize(g.nodes.size());
        std::vector<char> cyclic(g.classes.size(), 0);
        for (const auto& part : parts_)
            for (ClassIndex c : part) cyclic[c] = 1;
        for (ClassIndex c = 0; c < g.classes.size(); ++c) {
            const bool root = std::find(g.roots.begin(), g.roots.end(), c) != g.roots.end();
            const bool single = g.classes[c].nodes.size() == 1;
            column_of_class_[c] = mip_.add_column({single ? g.nodes[g.classes[c].nodes[0]].cost : 0, root ? 1.0 : 0.0, 1, true});
            if (single) {
                column_of_node_[g.classes[c].nodes[0]] = column_of_class_[c];
                continue;
            }
            MipRow one{0, 0, {{column_of_class_[c], -1}}};
            for (NodeIndex n : g.classes[c].nodes) {
                column_of_node_[n] = mip_.add_column({g.nodes[n].cost, 0, 1, cyclic[c] != 0});
                one.terms.emplace_back(column_of_node_[n], 1);
            }
            mip_.add_row(std::move(one));
        }
        for (ClassIndex c = 0; c < g.classes.size(); ++c) {
            std::map<ClassIndex, std::vector<NodeIndex>> users;
            for (NodeIndex n : g.classes[c].nodes)
                for (ClassIndex d : g.nodes[n].children) users[d].push_back(n);
            for (const auto& [d, nodes] : users) add_use(c, d, nodes);
        }
        for (const auto& part : parts_)
            for (ClassIndex a : part)
                for (ClassIndex b : neighbours(a))
                    if (a < b && std::binary_search(part.begin(), part.end(), b)) {
                        const auto back = neighbours(b);
                        if (std::binary_search(back.begin(), back.end(), a)) forbid({a, b});
                    }
    }

    std::vector<ClassIndex> neighbours(ClassIndex c) const {
        std::set<ClassIndex> all;
        for (NodeIndex n : small_.egraph.classes[c].nodes) all.insert(small_.egraph.nodes[n].children.begin(), small_.egraph.nodes[n].children.end());
        return {all.begin(), all.end()};
    }

    // When class c takes one of these nodes, class d is chosen too.
    void add_use(ClassIndex c, ClassIndex d, const std::vector<NodeIndex>& nodes) {
        MipRow row{-Mip::unbounded(), 0, {{column_of_class_[d], -1}}};
        if (nodes.size() == small_.egraph.classes[c].nodes.size())
            row.terms.emplace_back(column_of_class_[c], 1);
        else
            for (NodeIndex n : nodes) row.terms.emplace_back(column_of_node_[n], 1);
        mip_.add_row(std::move(row));
    }

    // Adds the loop formulas of one set, one for each class of the set. False when the set was there already.
    bool forbid(const std::vector<ClassIndex>& set) {
        if (!forbidden_.insert(set).second) return false;
        MipTerms exits;
        for (ClassIndex c : set)
            for (NodeIndex n : small_.egraph.classes[c].nodes) {
                const auto& children = small_.egraph.nodes[n].children;
                if (std::none_of(children.begin(), children.end(), [&](ClassIndex d) { return std::binary_search(set.begin(), set.end(), d); }))
                    exits.emplace_back(column_of_node_[n], 1);
            }
        for (ClassIndex j : set) {
            std::map<int, double> sum(exits.begin(), exits.end());
            sum[column_of_class_[j]] -= 1;
            mip_.add_row({0, Mip::unbounded(), MipTerms(sum.begin(), sum.end())});
        }
        return true;
    }

    std::vector<double> node_weights(const std::vector<double>& values) const {
        std::vector<double> weight(small_.egraph.nodes.size());
        for (NodeIndex n = 0; n < weight.size(); ++n) weight[n] = values[column_of_node_[n]];
        return weight;
    }

    // Adds rows for classes that a node needs indirectly, where the fractional answer violates them.
    bool add_violated_needs(const std::vector<double>& values) {
        if (small_.needs.empty()) return false;
        const SerializedEGraph& g = small_.egraph;
        bool added = false;
        for (ClassIndex c = 0; c < g.classes.size(); ++c) {
            std::map<ClassIndex, std::vector<NodeIndex>> users;
            std::map<ClassIndex, double> weight;
            for (NodeIndex n : g.classes[c].nodes) {
                if (values[column_of_node_[n]] < 1e-6) continue;
                for (ClassIndex d : needs_of(n)) weight[d] += values[column_of_node_[n]];
            }
            for (const auto& [d, w] : weight)
                if (w > values[column_of_class_[d]] + 1e-4 && needed_.insert({c, d}).second) users[d];
            if (users.empty()) continue;
            for (NodeIndex n : g.classes[c].nodes)
                for (ClassIndex d : needs_of(n))
                    if (auto it = users.find(d); it != users.end()) it->second.push_back(n);
            for (const auto& [d, nodes] : users) add_use(c, d, nodes), added = true;
        }
        return added;
    }

    std::vector<ClassIndex> needs_of(NodeIndex n) const {
        std::vector<ClassIndex> all;
        for (ClassIndex child : small_.egraph.nodes[n].children) all.insert(all.end(), small_.needs[child].begin(), small_.needs[child].end());
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    // Adds rows to the relaxation that its fractional answers violate. Uses half of the time at most.
    void tighten() {
        const double until = clock_.left() / 2;
        while (clock_.left() > until) {
            const MipAnswer answer = mip_.solve_relaxed(clock_.left() - until);
            if (answer.status != MipAnswer::Status::optimal) return;
            raise_bound(answer.bound);
            if (proves(result_.bound, result_.cost)) return;
            const std::vector<double> weight = node_weights(answer.values);
            round(weight);
            bool added = add_violated_needs(answer.values);
            for (const auto& set : violated_cycles(small_.egraph, parts_, weight, 200)) added |= forbid(set);
            if (!added) return;
        }
    }

    // Tries a whole choice near a fractional one, in which nodes of much weight are cheap.
    void round(const std::vector<double>& weight) {
        const Trees trees = cheapest_trees(small_.egraph, [&](NodeIndex n) { return (small_.egraph.nodes[n].cost + 1e-3) * (1 - weight[n]); });
        offer(small_.expand(trees.choice));
    }

    void search() {
        while (clock_.left() > 0 && !proves(result_.bound, result_.cost)) {
            const std::vector<double> start = start_point();
            const MipAnswer answer = mip_.solve(clock_.left(), start);
            if (answer.status == MipAnswer::Status::infeasible) throw InternalFault("the program of an extraction that has an answer must have one");
            raise_bound(answer.bound);
            if (answer.values.empty()) return;
            const std::vector<NodeIndex> choice = whole_choice(answer.values);
            const auto loops = cyclic_parts(small_.egraph, choice);
            offer(small_.expand(choice));
            bool added = false;
            for (const auto& set : loops) added |= forbid(set);
            if (!added) return;
        }
    }

    // The node of most weight in each chosen class. Nodes of equal weight are equally good.
    std::vector<NodeIndex> whole_choice(const std::vector<double>& values) const {
        std::vector<NodeIndex> choice(small_.egraph.classes.size(), no_index);
        for (ClassIndex c = 0; c < choice.size(); ++c) {
            if (values[column_of_class_[c]] < 0.5) continue;
            const auto& nodes = small_.egraph.classes[c].nodes;
            choice[c] = *std::max_element(nodes.begin(), nodes.end(),
                                          [&](NodeIndex a, NodeIndex b) { return values[column_of_node_[a]] < values[column_of_node_[b]]; });
        }
        return choice;
    }

    // The best choice as values of the variables; empty when it uses nodes that the reduction left out as no better.
    std::vector<double> start_point() const {
        const std::vector<NodeIndex> wanted = small_.restrict(result_.choice);
        Extraction known;
        known.choice = acyclic_choice(small_.egraph, wanted);
        known.check(small_.egraph);
        std::vector<double> values(mip_.columns(), 0);
        for (ClassIndex c = 0; c < known.choice.size(); ++c)
            if (known.choice[c] != no_index) values[column_of_class_[c]] = 1, values[column_of_node_[known.choice[c]]] = 1;
        return values;
    }

    const SerializedEGraph& original_;
    Clock clock_;
    Extraction result_;
    Reduced small_;
    bool whole_ = false;  // all costs are whole numbers, so bounds round up
    std::vector<std::vector<ClassIndex>> parts_;
    Mip mip_;
    std::vector<int> column_of_class_, column_of_node_;
    std::set<std::vector<ClassIndex>> forbidden_;
    std::set<std::pair<ClassIndex, ClassIndex>> needed_;
};

}  // namespace

Extraction extract_ilp(const SerializedEGraph& egraph, const ExtractOptions& options) { return Ilp(egraph, options).run(); }

}  // namespace loopegg
