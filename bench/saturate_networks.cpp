// Saturates the term of each network of the zoo by the phase 'networks' of the shipped rules, and prints the size of the e-graph and the seconds.
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/places.hpp"
#include "fisher/measures.hpp"
#include "graph/flops.hpp"
#include "graph/zoo/zoo.hpp"
#include "nest/net/graph_of_net.hpp"
#include "network/derivation.hpp"
#include "network/front.hpp"
#include "network/layer_costs.hpp"
#include "network/network_graph.hpp"
#include "rules/load.hpp"

using namespace loopegg;

int main(int argc, char** argv) {
    const RuleBook book = load_rules(shipped("rules/discover.rules"), {.judge = false, .deep = false});
    const Phase& phase = *book.find_phase("networks");
    fmt::print("{:<22} {:>9} {:>9} {:>9} {:>10} {:>8} {:>8}  {}\n", "network", "nodes", "classes", "edges", "iterations", "seconds", "MiB", "stop");
    for (const ZooEntry& entry : zoo()) {
        if (argc > 1 && argv[1] != entry.name) continue;
        const Graph graph = entry.build();
        NetworkGraph network(graph, book, {});
        const RunReport report = network.grow(phase);
        fmt::print("{:<22} {:>9} {:>9} {:>9} {:>10} {:>8.2f} {:>8.0f}  {}\n", entry.name, network.graph().node_count(), network.graph().class_count(),
                   network.graph().edges().size(), report.iterations.size(), report.seconds, static_cast<double>(report.peak_bytes) / (1 << 20),
                   name_of(report.stop));
        const double begin = clock_seconds(CLOCK_MONOTONIC);
        const MeasureInput sizes = sizes_of(graph);
        const StagewiseLoss loss(sizes);
        SiteCosts costs(graph, loss, [](const Node& node, const Term&) { return 1e-8 * static_cast<double>(macs(node)) + 1e-2; });
        FrontOptions plain;
        if (const char* k = getenv("K")) plain.max_pairs = std::stoul(k);
        plain.max_points = 3;
        if (const char* k = getenv("M")) plain.max_labels = std::stoul(k);
        if (const char* k = getenv("X")) plain.mixing_precision = std::stod(k);
        const Front front(network, loss, costs, plain);
        const double seconds = clock_seconds(CLOCK_MONOTONIC) - begin;
        FrontOptions optimistic = plain;
        optimistic.optimistic = true;
        const Front bound(network, loss, costs, optimistic);
        fmt::print("  front: {} networks, {} labels, gap {:.3f} points, {:.2f} s; bound {:.2f} s\n", front.curve().size(), front.labels(),
                   gap_between(front.curve(), bound.curve()), seconds, clock_seconds(CLOCK_MONOTONIC) - begin - seconds);
        for (const auto& [ms, points] : front.curve()) {
            double b = 1e9;
            for (const auto& [m, q] : bound.curve())
                if (m <= ms) b = q;
            static int k = 0;
            if (++k % (1 + front.curve().size() / 12) == 0) fmt::print("      {:.3f} ms {:.3f} bound {:.3f}\n", ms, points, b);
        }
        for (std::size_t i = 0; i < front.curve().size(); i += 1 + front.curve().size() / 8) {
            const FrontPoint p = front.network(i);
            const Graph made = graph_of(p.term, graph);
            const MeasureInput left = sizes_of(made);
            static NetRewriter rewriter(book);
            const double t0 = clock_seconds(CLOCK_MONOTONIC);
            const Derivation d = derive(network, book, rewriter, p);
            fmt::print("    {} steps, {} nests, {} in json, {:.2f} s, same graph: {}\n", d.steps.size(), d.nests.size(), to_json(d.steps).dump().size(),
                       clock_seconds(CLOCK_MONOTONIC) - t0, d.nests.empty() ? graph_of(d.to, graph) == made : true);
            fmt::print("    {:.3f} ms {:.3f} points; the guard says {:.3f}, {} M\n", p.ms, p.points, expected_loss(sizes, loss_parts(sizes, left)).points,
                       macs(made) / 1000000);
        }
        if (argc > 2)
            for (const auto& it : report.iterations) {
                fmt::print("  {} nodes {:.2f} s:", it.nodes, it.seconds);
                for (const auto& r : it.rules)
                    if (r.applications) fmt::print(" {} {}", r.rule, r.applications);
                fmt::print("\n");
            }
    }
}
