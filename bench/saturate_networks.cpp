// Saturates the term of each network of the zoo by the phase 'networks' of a rule file, extracts the front, and prints a Markdown table of sizes and seconds.
//
//     bench_saturate_networks [NETWORK [RULES [POINTS [LABELS [PAIRS]]]]]
//
// NETWORK may be 'all'. RULES is rules/discover.rules, POINTS the most that may be lost (3), LABELS and PAIRS the limits of FrontOptions unless they are given.
//
// A layer takes a time that is linear in its multiply-accumulates, so the table needs no latency model of a machine. The gap is in points, to a bound that no
// network is below.
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/places.hpp"
#include "fisher/measures.hpp"
#include "graph/flops.hpp"
#include "graph/zoo/zoo.hpp"
#include "network/front.hpp"
#include "network/layer_costs.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

double seconds_since(double begin) { return monotonic_seconds() - begin; }

std::string front_columns(const Graph& graph, const NetworkGraph& network, FrontOptions options) {
    const StagewiseLoss loss(sizes_of(graph));
    SiteCosts costs(graph, loss, [](const Node& node, const Term&) { return 1e-8 * static_cast<double>(macs(node)) + 1e-2; });
    const double begin = monotonic_seconds();
    const Front front(network, loss, costs, options);
    const double extracted = seconds_since(begin);
    options.optimistic = true;
    const Front bound(network, loss, costs, options);
    return fmt::format("{} | {} | {:.3f} | {:.2f} | {:.2f}", front.curve().size(), front.labels(), gap_between(front.curve(), bound.curve()), extracted,
                       seconds_since(begin) - extracted);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string only = argc > 1 ? argv[1] : "all", rules = argc > 2 ? argv[2] : shipped("rules/discover.rules");
    FrontOptions options;
    options.max_points = argc > 3 ? std::stod(argv[3]) : 3;
    if (argc > 4) options.max_labels = std::stoul(argv[4]);
    if (argc > 5) options.max_pairs = std::stoul(argv[5]);
    const RuleBook book = load_rules(rules, {.judge = false, .deep = false});
    if (book.find_phase("networks") == nullptr) return fmt::print(stderr, "{} has no phase 'networks'\n", rules), 2;
    fmt::print("| network | e-nodes | classes | edges | s | MiB | ends | front | labels | gap | front, s | bound, s |\n|{}\n",
               "---|---|---|---|---|---|---|---|---|---|---|---|");
    for (const ZooEntry& entry : zoo()) {
        if (only != "all" && only != entry.name) continue;
        const Graph graph = entry.build();
        NetworkGraph network(graph, book, {});
        const RunReport report = network.grow();
        fmt::print("| {} | {} | {} | {} | {:.2f} | {:.0f} | {} | ", entry.name, network.graph().node_count(), network.graph().class_count(),
                   network.graph().edges().size(), report.seconds, static_cast<double>(report.peak_bytes) / (1 << 20), name_of(report.stop));
        std::fflush(stdout);  // a front may take long
        fmt::print("{} |\n", front_columns(graph, network, options));
        std::fflush(stdout);
    }
}
