#include "extract/constrained.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "extract/cycles.hpp"
#include "extract/mip.hpp"

namespace loopegg {
namespace {

constexpr int always = -1;  // in place of a column: the node or class is always chosen

class Program {
public:
    Program(const SerializedEGraph& egraph, std::span<const SideConstraint> constraints)
        : egraph_(egraph), class_column_(egraph.classes.size(), always), node_column_(egraph.nodes.size(), always) {
        const std::vector<char> needed = needed_by_all();
        for (ClassIndex c = 0; c < egraph.classes.size(); ++c) {
            const std::vector<NodeIndex>& nodes = egraph.classes[c].nodes;
            if (needed[c] && nodes.size() == 1) {
                cost_of_all_ += egraph.nodes[nodes.front()].cost;
                continue;
            }
            if (!needed[c]) class_column_[c] = mip_.add_column({0, 0, 1, true});
            MipRow one{needed[c] ? 1.0 : 0.0, needed[c] ? 1.0 : 0.0, {}};
            for (NodeIndex n : nodes) one.terms.emplace_back(node_column_[n] = mip_.add_column({egraph.nodes[n].cost}), 1.0);
            if (!needed[c]) one.terms.emplace_back(class_column_[c], -1.0);
            mip_.add_row(std::move(one));
        }
        // A class is chosen exactly where a chosen node needs it, because a class that no node needs must not help to meet a constraint.
        std::vector<MipTerms> needed_by(egraph.classes.size());
        for (NodeIndex n = 0; n < egraph.nodes.size(); ++n) {
            if (node_column_[n] == always) continue;
            std::vector<ClassIndex> children = egraph.nodes[n].children;
            std::sort(children.begin(), children.end());
            children.erase(std::unique(children.begin(), children.end()), children.end());
            for (ClassIndex d : children) {
                if (class_column_[d] == always) continue;
                mip_.add_row({-Mip::unbounded(), 0, {{node_column_[n], 1.0}, {class_column_[d], -1.0}}});
                needed_by[d].emplace_back(node_column_[n], -1.0);
            }
        }
        for (ClassIndex d = 0; d < egraph.classes.size(); ++d) {
            if (class_column_[d] == always) continue;
            needed_by[d].emplace_back(class_column_[d], 1.0);
            mip_.add_row({-Mip::unbounded(), 0, std::move(needed_by[d])});
        }
        for (const SideConstraint& s : constraints) add(s);
    }

    std::optional<Extraction> solve(const ConstrainedOptions& options) {
        if (!possible_) return std::nullopt;
        Extraction found;
        found.choice.assign(egraph_.classes.size(), no_index), found.bound = cost_of_all_, found.method = "within";
        std::vector<double> values;
        if (mip_.columns() > 0) {
            const MipAnswer answer = mip_.solve(options.seconds, {}, options.gap);
            if (answer.values.empty()) return std::nullopt;
            values = answer.values, found.bound += answer.bound;
        }
        for (ClassIndex c = 0; c < egraph_.classes.size(); ++c) {
            if (class_column_[c] != always && values[static_cast<std::size_t>(class_column_[c])] < 0.5) continue;
            const auto weight = [&](NodeIndex n) { return node_column_[n] == always ? 1.0 : values[static_cast<std::size_t>(node_column_[n])]; };
            const std::vector<NodeIndex>& nodes = egraph_.classes[c].nodes;
            found.choice[c] = *std::max_element(nodes.begin(), nodes.end(), [&](NodeIndex a, NodeIndex b) { return weight(a) < weight(b); });
        }
        found.check(egraph_);
        found.optimal = proves(found.bound, found.cost);
        return found;
    }

private:
    // The classes that every choice needs: the roots, and the classes that the only node of such a class needs.
    std::vector<char> needed_by_all() const {
        std::vector<char> needed(egraph_.classes.size(), 0);
        std::vector<ClassIndex> waiting = egraph_.roots;
        while (!waiting.empty()) {
            const ClassIndex c = waiting.back();
            waiting.pop_back();
            if (needed[c]++) continue;
            if (egraph_.classes[c].nodes.size() > 1) continue;
            const std::vector<ClassIndex>& children = egraph_.nodes[egraph_.classes[c].nodes.front()].children;
            waiting.insert(waiting.end(), children.begin(), children.end());
        }
        return needed;
    }

    void add(const SideConstraint& s) {
        MipRow row{s.lower, s.upper, {}};
        for (const auto& [node, weight] : s.nodes) {
            if (node_column_[node] != always)
                row.terms.emplace_back(node_column_[node], weight);
            else
                row.lower -= weight, row.upper -= weight;
        }
        if (row.terms.empty())
            possible_ = possible_ && row.lower <= 0 && row.upper >= 0;
        else
            mip_.add_row(std::move(row));
    }

    const SerializedEGraph& egraph_;
    Mip mip_;
    std::vector<int> class_column_, node_column_;
    double cost_of_all_ = 0;  // of the nodes that are always chosen
    bool possible_ = true;    // the constraints can be met, as far as these nodes show
};

}  // namespace

std::optional<Extraction> constrained_extract(const SerializedEGraph& egraph, std::span<const SideConstraint> constraints, const ConstrainedOptions& options) {
    require(cyclic_parts(egraph).empty(), "an e-graph whose choice has side constraints has no cycles");
    return Program(egraph, constraints).solve(options);
}

}  // namespace loopegg
