#include "extract/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace loopegg {
namespace {

constexpr std::size_t max_classes_for_needs = 12'000;  // the sets are bit matrices: 12,000 classes are 18 MB

constexpr std::size_t max_steps_for_free = 200'000'000;  // about a second

struct Work {
    std::vector<ClassIndex> children;  // sorted, each once
    double cost;
    ClassIndex eclass;
    NodeIndex origin;
    bool alive = true;
};

class Bits {
public:
    explicit Bits(std::size_t size = 0, bool value = false) : words_((size + 63) / 64, value ? ~0ull : 0ull) {}
    void set(std::size_t i) { words_[i / 64] |= 1ull << (i % 64); }
    void reset(std::size_t i) { words_[i / 64] &= ~(1ull << (i % 64)); }
    bool test(std::size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
    void unite(const Bits& o) {
        for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= o.words_[i];
    }
    void intersect(const Bits& o) {
        for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= o.words_[i];
    }
    template <class F>
    void each(F visit) const {
        for (std::size_t i = 0; i < words_.size(); ++i)
            for (std::uint64_t w = words_[i]; w; w &= w - 1) visit(static_cast<ClassIndex>(i * 64 + static_cast<std::size_t>(__builtin_ctzll(w))));
    }
    friend bool operator==(const Bits&, const Bits&) = default;

private:
    std::vector<std::uint64_t> words_;
};

class Reducer {
public:
    Reducer(const SerializedEGraph& egraph, double known_cost)
        : known_cost_(known_cost), roots_(egraph.roots), members_(egraph.classes.size()), forced_(egraph.classes.size(), no_index) {
        for (NodeIndex n = 0; n < egraph.nodes.size(); ++n) {
            Work w{egraph.nodes[n].children, egraph.nodes[n].cost, egraph.nodes[n].eclass, n};
            normalize(w.children);
            members_[w.eclass].push_back(n);
            nodes_.push_back(std::move(w));
        }
        is_root_.assign(members_.size(), 0);
        for (ClassIndex c : roots_) is_root_[c] = 1;
    }

    Reduced run() {
        for (int round = 0; round < 20; ++round) {
            changed_ = false;
            drop_unfounded();
            drop_unreached();
            drop_duplicates();
            inline_single_nodes();
            if (members_.size() <= max_classes_for_needs || alive_classes() <= max_classes_for_needs) {
                find_needs();
                drop_by_needs();
            }
            if (!changed_) break;
        }
        drop_unfounded();
        drop_unreached();
        return finish();
    }

private:
    static void normalize(std::vector<ClassIndex>& children) {
        std::sort(children.begin(), children.end());
        children.erase(std::unique(children.begin(), children.end()), children.end());
    }

    void kill(NodeIndex n) { nodes_[n].alive = false, changed_ = true; }

    void sweep() {
        for (auto& members : members_) std::erase_if(members, [&](NodeIndex n) { return !nodes_[n].alive; });
    }

    std::size_t alive_classes() const {
        return static_cast<std::size_t>(std::count_if(members_.begin(), members_.end(), [](const auto& m) { return !m.empty(); }));
    }

    std::vector<std::vector<NodeIndex>> parents() const {
        std::vector<std::vector<NodeIndex>> result(members_.size());
        for (NodeIndex n = 0; n < nodes_.size(); ++n)
            if (nodes_[n].alive)
                for (ClassIndex c : nodes_[n].children) result[c].push_back(n);
        return result;
    }

    void drop_unfounded() {
        const auto parents_of = parents();
        std::vector<std::size_t> waiting(nodes_.size());
        std::vector<char> founded(members_.size(), 0);
        std::vector<ClassIndex> ready;
        order_.clear();
        auto found = [&](ClassIndex c) {
            if (!founded[c]) founded[c] = 1, ready.push_back(c), order_.push_back(c);
        };
        for (NodeIndex n = 0; n < nodes_.size(); ++n) {
            if (!nodes_[n].alive) continue;
            if (std::binary_search(nodes_[n].children.begin(), nodes_[n].children.end(), nodes_[n].eclass)) {
                kill(n);
                continue;
            }
            waiting[n] = nodes_[n].children.size();
            if (waiting[n] == 0) found(nodes_[n].eclass);
        }
        while (!ready.empty()) {
            const ClassIndex c = ready.back();
            ready.pop_back();
            for (NodeIndex p : parents_of[c])
                if (nodes_[p].alive && --waiting[p] == 0) found(nodes_[p].eclass);
        }
        for (NodeIndex n = 0; n < nodes_.size(); ++n)
            if (nodes_[n].alive && waiting[n] > 0) kill(n);
        sweep();
    }

    void drop_unreached() {
        std::vector<char> reached(members_.size(), 0);
        std::vector<ClassIndex> stack = roots_;
        for (ClassIndex c : stack) reached[c] = 1;
        while (!stack.empty()) {
            const ClassIndex c = stack.back();
            stack.pop_back();
            for (NodeIndex n : members_[c])
                for (ClassIndex child : nodes_[n].children)
                    if (!reached[child]) reached[child] = 1, stack.push_back(child);
        }
        for (ClassIndex c = 0; c < members_.size(); ++c)
            if (!reached[c])
                for (NodeIndex n : members_[c]) kill(n);
        sweep();
        std::erase_if(order_, [&](ClassIndex c) { return members_[c].empty(); });
    }

    // Of nodes with equal children the cheapest stays. (The general rule needs the sets below and may be too large to run.)
    void drop_duplicates() {
        for (auto& members : members_) {
            std::vector<NodeIndex> sorted = members;
            std::sort(sorted.begin(), sorted.end(), [&](NodeIndex a, NodeIndex b) {
                return std::tie(nodes_[a].children, nodes_[a].cost, a) < std::tie(nodes_[b].children, nodes_[b].cost, b);
            });
            for (std::size_t i = 1; i < sorted.size(); ++i)
                if (nodes_[sorted[i]].children == nodes_[sorted[i - 1]].children) kill(sorted[i]);
        }
        sweep();
    }

    // A class of one node gives its children to its parents when the node costs nothing, or when there is one parent, which pays the cost.
    void inline_single_nodes() {
        auto parents_of = parents();
        for (ClassIndex c : order_) {
            if (is_root_[c] || members_[c].size() != 1 || parents_of[c].empty()) continue;
            const NodeIndex only = members_[c][0];
            std::erase_if(parents_of[c], [&](NodeIndex p) { return !nodes_[p].alive; });
            if (nodes_[only].cost > 0 && parents_of[c].size() != 1) continue;
            for (NodeIndex p : parents_of[c]) {
                Work& parent = nodes_[p];
                std::erase(parent.children, c);
                parent.children.insert(parent.children.end(), nodes_[only].children.begin(), nodes_[only].children.end());
                normalize(parent.children);
                parent.cost += nodes_[only].cost;
                for (ClassIndex child : nodes_[only].children) parents_of[child].push_back(p);
                if (std::binary_search(parent.children.begin(), parent.children.end(), parent.eclass)) kill(p);
            }
            for (ClassIndex child : nodes_[only].children) {
                auto& list = parents_of[child];
                std::sort(list.begin(), list.end());
                list.erase(std::unique(list.begin(), list.end()), list.end());
                std::erase(list, only);
            }
            forced_[c] = nodes_[only].origin;
            kill(only);
            members_[c].clear();
        }
        sweep();
        std::erase_if(order_, [&](ClassIndex c) { return members_[c].empty(); });
    }

    // Finds the greatest solution of needs(c) = {c} + what all nodes of c need in common, by going down from 'everything'.
    void find_needs() {
        index_.assign(members_.size(), no_index);
        dense_.clear();
        for (ClassIndex c = 0; c < members_.size(); ++c)
            if (!members_[c].empty()) index_[c] = static_cast<ClassIndex>(dense_.size()), dense_.push_back(c);
        needs_.assign(dense_.size(), Bits());
        std::vector<char> known(dense_.size(), 0);
        const auto parents_of = parents();
        std::vector<char> queued(members_.size(), 1);
        std::vector<ClassIndex> queue(order_.begin(), order_.end());
        for (std::size_t at = 0; at < queue.size(); ++at) {
            const ClassIndex c = queue[at];
            queued[c] = 0;
            Bits common(dense_.size(), true);
            bool any = false;
            for (NodeIndex n : members_[c]) {
                const auto& children = nodes_[n].children;
                if (!std::all_of(children.begin(), children.end(), [&](ClassIndex d) { return known[index_[d]] != 0; })) continue;
                common.intersect(of_node(n));
                any = true;
            }
            if (!any) continue;  // the class is looked at again when a child is known
            common.set(index_[c]);
            if (known[index_[c]] && needs_[index_[c]] == common) continue;
            known[index_[c]] = 1;
            needs_[index_[c]] = std::move(common);
            for (NodeIndex p : parents_of[c])
                if (const ClassIndex up = nodes_[p].eclass; !queued[up]) queued[up] = 1, queue.push_back(up);
        }
    }

    Bits of_node(NodeIndex n) const {
        Bits all(dense_.size());
        for (ClassIndex child : nodes_[n].children) all.unite(needs_[index_[child]]);
        return all;
    }

    // For each class of `from`: every class that some term of it may hold.
    std::vector<Bits> reached_from(const Bits& from) const {
        std::vector<Bits> result(dense_.size());
        std::vector<ClassIndex> stack;
        from.each([&](ClassIndex start) {
            Bits& reached = result[start] = Bits(dense_.size());
            reached.set(start);
            stack.assign(1, start);
            while (!stack.empty()) {
                const ClassIndex c = stack.back();
                stack.pop_back();
                for (NodeIndex n : members_[dense_[c]])
                    for (ClassIndex child : nodes_[n].children)
                        if (const ClassIndex d = index_[child]; !reached.test(d)) reached.set(d), stack.push_back(d);
            }
        });
        return result;
    }

    void drop_by_needs() {
        std::vector<double> least(dense_.size());
        for (std::size_t i = 0; i < dense_.size(); ++i) {
            least[i] = nodes_[members_[dense_[i]][0]].cost;
            for (NodeIndex n : members_[dense_[i]]) least[i] = std::min(least[i], nodes_[n].cost);
        }
        Bits always(dense_.size());
        for (ClassIndex root : roots_) always.unite(needs_[index_[root]]);
        std::size_t needed = 0;
        always.each([&](ClassIndex) { ++needed; });
        const bool cheap = needed * nodes_.size() <= max_steps_for_free;
        const std::vector<Bits> above = cheap ? reached_from(always) : std::vector<Bits>{};
        for (ClassIndex c : dense_) {
            const ClassIndex self = index_[c];
            // Classes that are in every answer and not above c: a node may use them at no further cost and with no cycle.
            Bits free = cheap ? always : Bits(dense_.size());
            free.each([&](ClassIndex d) {
                if (above[d].test(self)) free.reset(d);
            });
            std::vector<NodeIndex> sorted = members_[c];
            std::sort(sorted.begin(), sorted.end(), [&](NodeIndex a, NodeIndex b) {
                return std::make_tuple(nodes_[a].cost, nodes_[a].children.size(), a) < std::make_tuple(nodes_[b].cost, nodes_[b].children.size(), b);
            });
            std::vector<NodeIndex> kept;
            for (NodeIndex n : sorted) {
                const Bits below = of_node(n);
                bool out = below.test(self);
                for (std::size_t k = 0; k < kept.size() && !out; ++k) {
                    const auto& other = nodes_[kept[k]].children;
                    out = std::all_of(other.begin(), other.end(), [&](ClassIndex d) { return below.test(index_[d]) || free.test(index_[d]); });
                }
                if (!out) {
                    Bits all = below;
                    all.unite(always);
                    double least_total = nodes_[n].cost;
                    all.each([&](ClassIndex d) {
                        if (d != self) least_total += least[d];
                    });
                    out = least_total > known_cost_ + 1e-9 * std::max(1.0, known_cost_);
                }
                if (out)
                    kill(n);
                else
                    kept.push_back(n);
            }
        }
        sweep();
    }

    Reduced finish() {
        find_dense();
        Reduced result;
        result.forced = forced_;
        for (ClassIndex c : dense_) result.egraph.add_class(""), result.class_origin.push_back(c);
        for (ClassIndex c : dense_)
            for (NodeIndex n : members_[c]) {
                std::vector<ClassIndex> children;
                for (ClassIndex child : nodes_[n].children) children.push_back(index_[child]);
                result.egraph.nodes.push_back({"", "", std::move(children), index_[c], nodes_[n].cost});
                result.egraph.classes[index_[c]].nodes.push_back(static_cast<NodeIndex>(result.origin.size()));
                result.origin.push_back(nodes_[n].origin);
            }
        for (ClassIndex root : roots_) result.egraph.roots.push_back(index_[root]);
        if (dense_.size() <= max_classes_for_needs) {
            find_needs();
            result.needs.resize(dense_.size());
            for (std::size_t i = 0; i < dense_.size(); ++i) needs_[i].each([&](ClassIndex d) { result.needs[i].push_back(d); });
        }
        return result;
    }

    void find_dense() {
        index_.assign(members_.size(), no_index);
        dense_.clear();
        for (ClassIndex c = 0; c < members_.size(); ++c)
            if (!members_[c].empty()) index_[c] = static_cast<ClassIndex>(dense_.size()), dense_.push_back(c);
    }

    double known_cost_;
    std::vector<ClassIndex> roots_;
    std::vector<char> is_root_;
    std::vector<Work> nodes_;
    std::vector<std::vector<NodeIndex>> members_;
    std::vector<NodeIndex> forced_;
    std::vector<ClassIndex> order_;  // classes that have a finite term, children first
    std::vector<ClassIndex> index_, dense_;
    std::vector<Bits> needs_;
    bool changed_ = false;
};

}  // namespace

std::vector<NodeIndex> Reduced::expand(const std::vector<NodeIndex>& choice) const {
    std::vector<NodeIndex> result = forced;
    for (std::size_t c = 0; c < choice.size(); ++c)
        if (choice[c] != no_index) result[class_origin[c]] = origin[choice[c]];
    return result;
}

std::vector<NodeIndex> Reduced::restrict(const std::vector<NodeIndex>& choice) const {
    std::vector<NodeIndex> result(class_origin.size(), no_index);
    for (NodeIndex n = 0; n < origin.size(); ++n)
        if (choice[class_origin[egraph.nodes[n].eclass]] == origin[n]) result[egraph.nodes[n].eclass] = n;
    return result;
}

Reduced reduce(const SerializedEGraph& egraph, double known_cost) { return Reducer(egraph, known_cost).run(); }

}  // namespace loopegg
