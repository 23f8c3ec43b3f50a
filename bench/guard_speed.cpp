// How long the default guard takes over configurations of a network drawn from the neural rules, and how many it rejects.
//
//   bench_guard_speed [configurations=1000] [model=zoo:resnet34-cifar10] [data=] [threads=0] [seeds=3] [batch=8]
//
// Each convolution of a block draws its own restriction (or none); the store is empty at the start and in memory.
#include <sys/resource.h>

#include <chrono>
#include <random>

#include <fmt/format.h>

#include "base/error.hpp"
#include "fisher/oracle.hpp"
#include "graph/flops.hpp"
#include "graph/load.hpp"
#include "rewrite/plan_rules.hpp"

using namespace loopegg;

namespace {

const std::vector<std::string> menu{
    R"x({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 2}})x",
    R"x({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 4}})x",
    R"x({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 8}})x",
    R"x({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 16}})x",
    R"x({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": "(extent ci)"}})x",
    R"x({"rule": "group-axes", "with": {"?a": "(quo oh (/ (extent oh) 2))", "?b": "ci", "?g": 2}})x",
    R"x({"rule": "cut-domain", "with": {"?a": "co", "?k": "(/ (extent co) 2)"}},
        {"rule": "group-axes", "part": 1, "with": {"?a": "co", "?b": "ci", "?g": 2}})x",
    R"x({"rule": "cut-domain", "with": {"?a": "co", "?k": "(/ (extent co) 2)"}},
        {"rule": "group-axes", "part": 0, "with": {"?a": "co", "?b": "ci", "?g": 2}},
        {"rule": "group-axes", "part": 1, "with": {"?a": "co", "?b": "ci", "?g": 4}})x",
    R"x({"rule": "bottleneck-axis", "with": {"?a": "co", "?k": 2}, "restore": "repeat"})x",
    R"x({"rule": "bottleneck-axis", "with": {"?a": "co", "?k": 4}, "restore": "pointwise"})x",
    R"x({"rule": "bottleneck-axis", "with": {"?a": "ci", "?k": 2}})x",
    R"x({"rule": "bottleneck-axis", "with": {"?a": "(rem oh 2)", "?k": 2}, "restore": "repeat"},
        {"rule": "bottleneck-axis", "with": {"?a": "(rem ow 2)", "?k": 2}, "restore": "repeat"})x",
};

Graph draw(const Graph& original, std::mt19937& random) {
    std::string steps;
    double share = 0.2 + 0.8 * static_cast<double>(random() % 1000) / 1000;
    for (const Node& node : original.nodes)
        if (node.op == "conv2d" && node.name.starts_with("layer") && node.integers("kernel")[0] == 3 && static_cast<double>(random() % 1000) / 1000 < share)
            steps += fmt::format(R"({}{{"site": "{}", "apply": [{}]}})", steps.empty() ? "" : ", ", node.name, menu[random() % menu.size()]);
    return apply_plan(original, read_plan(make_source("plan", R"({"steps": [)" + steps + "]}")), shipped_plan_rules());
}

}  // namespace

int main(int argc, char** argv) try {
    std::map<std::string, std::string> o{
        {"configurations", "1000"}, {"model", "zoo:resnet34-cifar10"}, {"data", ""}, {"threads", "0"}, {"seeds", "3"}, {"batch", "8"}};
    for (int i = 1; i < argc; ++i) {
        std::string a = argv[i];
        auto equals = a.find('=');
        if (equals == std::string::npos || !o.contains(a.substr(0, equals))) throw UsageError("unknown argument " + a);
        o[a.substr(0, equals)] = a.substr(equals + 1);
    }
    Graph original = load_graph(o["model"]);
    std::mt19937 random(1);
    std::vector<Graph> variants;
    double share = 0;
    for (int i = 0; i < std::stoi(o["configurations"]); ++i)
        variants.push_back(draw(original, random)), share += static_cast<double>(macs(variants.back())) / static_cast<double>(macs(original));
    OracleOptions options;
    options.data = o["data"], options.threads = std::stoi(o["threads"]), options.seeds = std::stoi(o["seeds"]), options.batch = std::stol(o["batch"]);
    options.progress = [&](std::int64_t done, std::int64_t all) {
        if (done % 50 == 0) fmt::print(stderr, "{} of {}\n", done, all);
    };
    auto oracle = make_oracle(options);
    oracle->judge(original, variants);
    OracleCounts c = oracle->counts();
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    double processor = static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    fmt::print(
        "{} configurations ({:.0f}% of the MACs on average): {:.1f} s, {:.3f} s a verdict ({:.3f} processor-seconds), {:.2f} passes a verdict, {:.1f}% "
        "rejected, {:.0f} MiB at most\n",
        c.asked, 100 * share / static_cast<double>(variants.size()), c.seconds, c.seconds / static_cast<double>(c.asked),
        processor / static_cast<double>(c.asked), static_cast<double>(c.passes) / static_cast<double>(c.asked),
        100 * static_cast<double>(c.asked - c.allowed) / static_cast<double>(c.asked), static_cast<double>(use.ru_maxrss) / 1024);
    return 0;
} catch (const UserError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
}
