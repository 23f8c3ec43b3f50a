#include "extract/cycles.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace loopegg {
namespace {

// Tarjan's algorithm with its own stack, because e-graphs are deep.
template <class Children>
std::vector<std::vector<ClassIndex>> components(std::size_t count, Children children) {
    std::vector<std::uint32_t> number(count, no_index), low(count, 0);
    std::vector<char> on_stack(count, 0);
    std::vector<ClassIndex> stack;
    struct Frame {
        ClassIndex c;
        std::vector<ClassIndex> next;
        std::size_t at;
    };
    std::vector<Frame> frames;
    std::vector<std::vector<ClassIndex>> result;
    std::uint32_t counter = 0;
    auto open = [&](ClassIndex c) {
        number[c] = low[c] = counter++;
        stack.push_back(c), on_stack[c] = 1;
        frames.push_back({c, children(c), 0});
    };
    for (ClassIndex start = 0; start < count; ++start) {
        if (number[start] != no_index) continue;
        open(start);
        while (!frames.empty()) {
            Frame& f = frames.back();
            if (f.at < f.next.size()) {
                const ClassIndex d = f.next[f.at++];
                if (number[d] == no_index)
                    open(d);
                else if (on_stack[d])
                    low[f.c] = std::min(low[f.c], number[d]);
                continue;
            }
            const ClassIndex c = f.c;
            frames.pop_back();
            if (!frames.empty()) low[frames.back().c] = std::min(low[frames.back().c], low[c]);
            if (low[c] != number[c]) continue;
            std::vector<ClassIndex> part;
            for (ClassIndex d = no_index; d != c;) d = stack.back(), stack.pop_back(), on_stack[d] = 0, part.push_back(d);
            if (part.size() > 1) std::sort(part.begin(), part.end()), result.push_back(std::move(part));
        }
    }
    std::sort(result.begin(), result.end());
    return result;
}

struct Arc {
    ClassIndex to;
    double length;
};

// The arcs from class c to classes d of the same part. The length of an arc is the weight of c's nodes that avoid d: 0 where every choice of c needs d.
std::vector<Arc> arcs_of(const SerializedEGraph& egraph, ClassIndex c, std::span<const double> weight, const std::vector<std::uint32_t>& part_of) {
    double total = 0;
    std::map<ClassIndex, double> through;
    for (NodeIndex n : egraph.classes[c].nodes) {
        total += weight[n];
        for (ClassIndex d : egraph.nodes[n].children)
            if (part_of[d] == part_of[c]) through[d] += weight[n];
    }
    std::vector<Arc> arcs;
    for (const auto& [d, w] : through)
        if (w > 1e-7) arcs.push_back({d, std::max(0.0, total - w)});
    return arcs;
}

}  // namespace

std::vector<std::vector<ClassIndex>> cyclic_parts(const SerializedEGraph& egraph) {
    return components(egraph.classes.size(), [&](ClassIndex c) {
        std::vector<ClassIndex> all;
        for (NodeIndex n : egraph.classes[c].nodes) all.insert(all.end(), egraph.nodes[n].children.begin(), egraph.nodes[n].children.end());
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    });
}

std::vector<std::vector<ClassIndex>> cyclic_parts(const SerializedEGraph& egraph, const std::vector<NodeIndex>& choice) {
    return components(egraph.classes.size(),
                      [&](ClassIndex c) { return choice[c] == no_index ? std::vector<ClassIndex>{} : egraph.nodes[choice[c]].children; });
}

std::vector<std::vector<ClassIndex>> violated_cycles(const SerializedEGraph& egraph, const std::vector<std::vector<ClassIndex>>& parts,
                                                     std::span<const double> weight, std::size_t most) {
    std::vector<std::uint32_t> part_of(egraph.classes.size(), no_index);
    for (std::uint32_t p = 0; p < parts.size(); ++p)
        for (ClassIndex c : parts[p]) part_of[c] = p;
    std::vector<std::vector<Arc>> arcs(egraph.classes.size());
    std::vector<double> total(egraph.classes.size(), 0);
    for (const auto& part : parts)
        for (ClassIndex c : part) {
            arcs[c] = arcs_of(egraph, c, weight, part_of);
            for (NodeIndex n : egraph.classes[c].nodes) total[c] += weight[n];
        }
    std::vector<std::pair<double, std::vector<ClassIndex>>> found;
    std::set<std::vector<ClassIndex>> seen;
    std::vector<double> distance(egraph.classes.size());
    std::vector<ClassIndex> before(egraph.classes.size());
    for (const auto& part : parts)
        for (ClassIndex start : part) {
            if (total[start] < 1e-4) continue;
            // Looks for the shortest way from `start` back to itself. A cycle is violated when it is shorter than the weight of `start`.
            const double limit = total[start] - 1e-4;
            for (ClassIndex c : part) distance[c] = limit, before[c] = no_index;
            double around = limit;
            ClassIndex last = no_index;
            using Entry = std::pair<double, ClassIndex>;
            std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
            queue.push({0, start});
            bool first = true;
            while (!queue.empty()) {
                const auto [d, c] = queue.top();
                queue.pop();
                if (d >= around) break;
                if (!first && (c == start || d > distance[c])) continue;
                first = false;
                for (const Arc& arc : arcs[c]) {
                    const double next = d + arc.length;
                    if (arc.to == start) {
                        if (next < around) around = next, last = c;
                    } else if (next < distance[arc.to]) {
                        distance[arc.to] = next, before[arc.to] = c;
                        queue.push({next, arc.to});
                    }
                }
            }
            if (last == no_index) continue;
            std::vector<ClassIndex> cycle{start};
            for (ClassIndex c = last; c != start; c = before[c]) cycle.push_back(c);
            std::sort(cycle.begin(), cycle.end());
            if (seen.insert(cycle).second) found.emplace_back(around - total[start], std::move(cycle));
        }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (found.size() > most) found.resize(most);
    std::vector<std::vector<ClassIndex>> result;
    for (auto& f : found) result.push_back(std::move(f.second));
    return result;
}

}  // namespace loopegg
