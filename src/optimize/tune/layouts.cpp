#include "optimize/tune/layouts.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "backends/network/network_plan.hpp"
#include "backends/network/value_orders.hpp"
#include "backends/target/target_rules.hpp"
#include "base/places.hpp"
#include "graph/operators.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/grammar.hpp"
#include "optimize/tune/algorithms.hpp"
#include "optimize/tune/choose.hpp"
#include "optimize/tune/layout_times.hpp"
#include "optimize/tune/tuning.hpp"
#include "rewrite/rule_books.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

constexpr double least_gain = 0.02;      // of the network's time, by the nests alone: less is not worth another network
constexpr std::size_t max_layouts = 64;  // of one nest

// How the values of a node are stored, in the order of Movable::values.
using Orders = std::vector<MemoryOrder>;

// A node that may read or write blocks: one nest, or Winograd's three.
struct Movable {
    std::string node;
    bool site = false;                              // a site has its schedules tuned, and any other node has default schedules
    std::vector<Term> nests{};                      // as they run now
    std::vector<std::string> values{};              // what the nests read and write; no scratch between them
    std::vector<std::vector<int>> place{};          // by nest and buffer: the place among the values, or -1
    Orders now{};                                   // how the values are now
    std::map<Orders, std::vector<Term>> layouts{};  // by the rules; a nest whose layout is another one is naive
};

// Naive nests in every layout that the rules give.
class LayoutRules {
public:
    explicit LayoutRules(const Target& target)
        : machine_(vector_machine(target)),
          book_(book_with_phase("layouts", target.rules, shipped("rules/algorithms.rules"))),
          phase_(book_->find_phase("layouts")) {}

    explicit operator bool() const { return phase_ != nullptr; }

    // Equal nests, all naive. Nodes of one shape share their answer.
    const std::vector<Term>& of(const Term& nest) {
        const Term naive = nest_of(statement_of(nest_parts(nest).statement));
        const auto [at, fresh] = known_.try_emplace(naive);
        if (fresh) at->second = equal_terms(naive, *book_, *phase_, {.strict_fp = true, .proven = true, .gpu = {}, .cpu = machine_}, max_layouts);
        return at->second;
    }

private:
    VectorMachine machine_;
    std::shared_ptr<const RuleBook> book_;
    const Phase* phase_;
    std::unordered_map<Term, std::vector<Term>> known_;
};

// The nests of the node in all layouts of the values around it. What is between its nests stays as it is.
void find_layouts(Movable& m, LayoutRules& rules) {
    m.layouts[m.now] = m.nests;
    for (std::size_t i = 0; i < m.nests.size(); ++i) {
        const Statement before = statement_of(nest_parts(m.nests[i]).statement);
        const std::map<Orders, std::vector<Term>> so_far = m.layouts;
        for (const Term& made : rules.of(m.nests[i])) {
            const Statement after = statement_of(nest_parts(made).statement);
            bool same_scratch = true;
            for (std::size_t b = 0; b < after.buffers.size(); ++b)
                same_scratch = same_scratch && (m.place[i][b] >= 0 || after.buffers[b].blocking == before.buffers[b].blocking);
            if (!same_scratch) continue;
            for (const auto& [orders, nests] : so_far) {
                Orders other = orders;
                for (std::size_t b = 0; b < after.buffers.size(); ++b)
                    if (m.place[i][b] >= 0) other[static_cast<std::size_t>(m.place[i][b])] = after.buffers[b].order();
                std::vector<Term> row = nests;
                row[i] = made;
                m.layouts.try_emplace(std::move(other), std::move(row));
            }
        }
    }
}

// Nodes that compute everything and whose nests have several layouts by the rules.
std::vector<Movable> movable_nodes(const Graph& graph, const NetworkPlan& plan, LayoutRules& rules) {
    std::vector<Movable> all;
    std::map<std::string, std::size_t> found;
    for (const NetworkPlan::Step& step : plan.steps) {
        const Node* node = step.nest && !takes_any_order(step) ? graph.find(step.nest->site) : nullptr;
        if (!node || !node->domain.whole() || statements_of(*node).size() != 1) continue;
        const auto [at, fresh] = found.try_emplace(node->name, all.size());
        if (fresh) all.push_back({.node = node->name, .site = is_site(*node)});
        Movable& m = all[at->second];
        m.nests.push_back(step.nest->nest);
        const Statement s = statement_of(nest_parts(step.nest->nest).statement);
        std::vector<int>& place = m.place.emplace_back(s.buffers.size(), -1);
        for (std::size_t b = 0; b < s.buffers.size(); ++b) {
            const std::string& value = step.nest->operands[b].value;
            if (value.empty() || is_scratch(value)) continue;
            place[b] = static_cast<int>(m.values.size());
            m.values.push_back(value), m.now.push_back(s.buffers[b].order());
        }
    }
    std::erase_if(
        all, [](const Movable& m) { return std::any_of(m.nests.begin(), m.nests.end(), [](const Term& nest) { return !nest_parts(nest).restore.empty(); }); });
    std::erase_if(all, [](const Movable& m) { return std::any_of(m.now.begin(), m.now.end(), [](const MemoryOrder& order) { return !order.empty(); }); });
    for (Movable& m : all) find_layouts(m, rules);
    std::erase_if(all, [](const Movable& m) { return m.layouts.size() < 2; });
    return all;
}

// Values that are alike, as groups. A group is offered the orders that everyone who writes or reads one of its values can take.
class Groups {
public:
    Groups(const Graph& graph, const NetworkPlan& plan, std::vector<Movable>& nodes) : nodes_(nodes) {
        for (const NetworkPlan::Step& step : plan.steps)
            for (const std::string& value : step.values()) find(value);
        ValueOrders orders = value_orders(plan, graph);
        for (const SameOrder& pair : orders.alike) group_[find(pair.a)] = find(pair.b);
        std::set<std::string> movable;
        for (const Movable& m : nodes_) movable.insert(m.node);
        for (const NetworkPlan::Step& step : plan.steps)
            if (step.nest && !takes_any_order(step) && !movable.contains(step.nest->site))
                for (const std::string& value : step.values()) orders.logical.insert(value);
        for (const Movable& m : nodes_)
            for (std::size_t v = 0; v < m.values.size(); ++v) meet(find(m.values[v]), orders_of(m, v));
        for (const std::string& value : orders.logical) meet(find(value), {MemoryOrder{}});
        for (const SameOrder& pair : orders.alike) std::erase_if(offered_[find(pair.a)], [&](const MemoryOrder& order) { return !pair.takes(order); });
        drop_impossible();
        for (auto& [group, some] : offered_) {  // the widest blocks alone
            const auto widest = std::max_element(some.begin(), some.end(), [](const MemoryOrder& a, const MemoryOrder& b) { return width(a) < width(b); });
            if (widest != some.end()) some = {MemoryOrder{}, MemoryOrder(*widest)};
        }
        drop_impossible();
    }

    std::string find(const std::string& value) {
        std::string root = value;
        for (auto up = group_.try_emplace(root, root).first; up->second != root; up = group_.try_emplace(root, root).first) root = up->second;
        group_[value] = root;
        return root;
    }
    bool moves(const std::string& value) { return offered_[find(value)].size() > 1; }
    std::int64_t moving() {
        const std::map<std::string, std::string> values = group_;
        return std::count_if(values.begin(), values.end(), [&](const auto& v) { return moves(v.first); });
    }

private:
    static std::int64_t width(const MemoryOrder& order) { return order.empty() ? 0 : order.back().rows; }
    static std::set<MemoryOrder> orders_of(const Movable& m, std::size_t value) {
        std::set<MemoryOrder> all;
        for (const auto& [orders, nests] : m.layouts) all.insert(orders[value]);
        return all;
    }
    bool meet(const std::string& group, const std::set<MemoryOrder>& those) {
        const auto [at, fresh] = offered_.try_emplace(group, those);
        return !fresh && std::erase_if(at->second, [&](const MemoryOrder& order) { return !those.contains(order); }) > 0;
    }

    // Drops layouts that some value cannot have, and orders that no layout is left for, until nothing changes. Where one node has two values of a group,
    // both are alike.
    void drop_impossible() {
        for (bool changed = true; changed;) {
            changed = false;
            for (Movable& m : nodes_) {
                std::erase_if(m.layouts, [&](const auto& l) {
                    std::map<std::string, MemoryOrder> in_group;
                    for (std::size_t v = 0; v < m.values.size(); ++v) {
                        const std::string group = find(m.values[v]);
                        if (!offered_.at(group).contains(l.first[v]) || in_group.try_emplace(group, l.first[v]).first->second != l.first[v]) return true;
                    }
                    return false;
                });
                for (std::size_t v = 0; v < m.values.size(); ++v) changed = meet(find(m.values[v]), orders_of(m, v)) || changed;
            }
        }
    }

    std::vector<Movable>& nodes_;
    std::map<std::string, std::string> group_;
    std::map<std::string, std::set<MemoryOrder>> offered_;
};

// One way to run a node.
struct Way {
    Orders orders;
    const std::vector<Term>* nests;
    double ms;
};

// The options of each node. All nodes that write or read values of one group agree with the first of them.
std::vector<std::vector<NodeOption>> options_of(const std::vector<Movable>& nodes, const std::vector<std::vector<Way>>& ways, Groups& groups) {
    std::map<std::string, std::pair<std::size_t, std::size_t>> first;  // by group: a node, and the place of a value
    std::vector<std::vector<NodeOption>> options(nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (std::size_t w = 0; w < ways[n].size(); ++w) options[n].push_back({ways[n][w].ms});
        for (std::size_t v = 0; v < nodes[n].values.size(); ++v) {
            if (!groups.moves(nodes[n].values[v])) continue;
            const auto [other, value] = first.try_emplace(groups.find(nodes[n].values[v]), n, v).first->second;
            if (other == n) continue;
            for (std::size_t w = 0; w < ways[n].size(); ++w) {
                NodeOption::Company company{other, {}};
                for (std::size_t o = 0; o < ways[other].size(); ++o)
                    if (ways[other][o].orders[value] == ways[n][w].orders[v]) company.options.push_back(o);
                options[n][w].only_with.push_back(std::move(company));
            }
        }
    }
    return options;
}

// What runs now has the first way of each node.
std::vector<std::vector<Way>> ways_of(const std::vector<Movable>& nodes, const LayoutTimes& times) {
    std::vector<std::vector<Way>> ways(nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (const auto& [orders, nests] : nodes[n].layouts)
            if (const auto ms = times.of(nests)) ways[n].push_back({orders, &nests, *ms});
        std::stable_partition(ways[n].begin(), ways[n].end(), [&](const Way& w) { return w.orders == nodes[n].now; });
    }
    return ways;
}

}  // namespace

Layouts with_layouts(const Run& run, const Graph& graph, const Schedules& schedules, const Effort& effort) {
    const Target& target = run.target;
    LayoutRules rules(target);
    if (!rules || target.gpu() || target.on_board()) return {schedules};  // the layouts of a network are too many for a board
    const NetworkPlan plan = plan_without_constants(graph, schedules, target);
    std::vector<Movable> nodes = movable_nodes(graph, plan, rules);
    Groups groups(graph, plan, nodes);
    std::erase_if(nodes, [](const Movable& m) { return m.layouts.size() < 2; });
    if (nodes.empty()) return {schedules};

    run.progress.advance(0, fmt::format("trying {} values in blocks of channels", groups.moving()));
    LayoutTimes times(run, effort);
    for (const Movable& m : nodes)
        for (std::size_t i = 0; i < m.nests.size(); ++i) {
            std::unordered_set<Term> distinct;
            for (const auto& [orders, nests] : m.layouts)
                if (distinct.insert(nests[i]).second) times.add(nests[i], m.nests[i], m.site);
        }
    times.explore();
    std::vector<std::vector<Way>> ways;
    std::optional<NodeChoice> best;
    double plain = 0;
    for (const bool last : {false, true}) {
        ways = ways_of(nodes, times);
        plain = 0;
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            if (ways[n].empty() || ways[n].front().orders != nodes[n].now) return {schedules};
            plain += ways[n].front().ms;
        }
        best = choose(options_of(nodes, ways, groups));
        if (!best || best->ms > (1 - least_gain) * plain) return {schedules};
        if (last) break;
        for (std::size_t n = 0; n < nodes.size(); ++n)
            for (const Term& nest : *ways[n][best->picked[n]].nests) times.want(nest);
        times.tune_wanted();
    }
    Schedules out = schedules;
    std::size_t blocked = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        const Way& way = ways[n][best->picked[n]];
        if (way.orders == nodes[n].now) continue;
        std::vector<Term> nests;
        for (const Term& nest : *way.nests) nests.push_back(times.scheduled(nest));
        out[nodes[n].node] = nests.size() == 1 ? nests[0] : with_nests(schedules.at(nodes[n].node), nests);
        ++blocked;
    }
    return {std::move(out), fmt::format("{} of {} steps write or read blocks of channels: {:.3f} ms instead of {:.3f}, by the nests alone", blocked,
                                        nodes.size(), best->ms, plain)};
}

}  // namespace loopegg
