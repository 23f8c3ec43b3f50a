// Runs the math microbenchmark and prints one JSON object a line: sizes, seconds and memory. bench/math_microbenchmark.py runs egglog interleaved with it.
#include <sys/resource.h>

#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "bench/math_rules.hpp"
#include "egraph/runner.hpp"

using namespace loopegg;

namespace {

double cpu() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
    RunOptions options;
    options.limits.iterations = 11;
    bool proofs = false;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg == "--proofs")
            proofs = true;
        else if (arg == "--plain")
            options.search = SearchMode::plain;
        else if (arg == "--checked")
            options.search = SearchMode::checked;
        else if (arg == "--backoff")
            options.scheduler = Scheduler::backoff;
        else if (arg == "--iterations" && i + 1 < argc)
            options.limits.iterations = std::stoul(argv[++i]);
        else {
            std::cerr << "use: math_microbenchmark [--proofs] [--plain|--checked] [--backoff] [--iterations N]\n";
            return 2;
        }
    }
    std::vector<double> spent;  // processor seconds up to the end of each iteration
    options.after_iteration = [&](const IterationReport&) {
        spent.push_back(cpu());
        return true;
    };
    EGraph graph(EGraph::Options{.proofs = proofs});
    for (const Term& t : math_terms()) graph.add(t);
    Runner runner(graph, math_rules());
    const double before = cpu();
    const RunReport report = runner.run(options);
    nlohmann::json out;
    for (std::size_t i = 0; i < report.iterations.size(); ++i) {
        const IterationReport& it = report.iterations[i];
        out["iterations"].push_back({{"cpu", spent[i] - (i ? spent[i - 1] : before)},
                                     {"nodes", it.nodes},
                                     {"classes", it.classes},
                                     {"seconds", it.seconds},
                                     {"search", it.search_seconds},
                                     {"apply", it.apply_seconds},
                                     {"rebuild", it.rebuild_seconds}});
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    out["stop"] = name_of(report.stop);
    out["seconds"] = report.seconds;
    out["cpu_seconds"] = cpu() - before;
    out["graph_bytes"] = report.peak_bytes;
    out["peak_mb"] = static_cast<double>(usage.ru_maxrss) / 1024;
    std::cout << out.dump() << "\n";
}
