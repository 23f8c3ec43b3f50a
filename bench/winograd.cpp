// Convolutions of 3x3 as transforms and products, beside one nest each: the times of both.
//   bench_winograd [MODEL] [TRIED]    every distinct 3x3 convolution of stride 1: the best of TRIED first schedules of each nest
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include "backends/measure/cold_weights.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "backends/network/network.hpp"
#include "backends/target/schedule_rules.hpp"
#include "backends/target/target.hpp"
#include "graph/load.hpp"
#include "nest/domain/winograd_nests.hpp"

using namespace loopegg;

namespace {

struct Best {
    double ms = std::numeric_limits<double>::infinity();
    Term nest;
    std::string why;
};

Best best_of(const Term& nest, const Target& target, TvmMeasurer& measurer, std::size_t tried) {
    const std::vector<Term> all = schedule_rules(target)->schedules(nest, tried);
    std::vector<Candidate> candidates;
    for (const Term& t : all) candidates.push_back({t, target.name});
    const std::vector<Measured> times = measurer.measure(candidates);
    Best best;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (!times[i].latency)
            best.why = times[i].why;
        else if (times[i].latency->median_ms < best.ms)
            best = {times[i].latency->median_ms, all[i], ""};
    }
    return best;
}

int times(const std::string& model, std::size_t tried) {
    const Target host = find_target("host");
    const Model input = load_model(model);
    MeasurerOptions options;
    options.cold_bytes = cold_bytes_for(input.weights);
    TvmMeasurer measurer(options);
    const std::map<std::string, Term> nests = fused_nests(input.graph, {}, host);
    const bool verbose = std::getenv("SHOW") != nullptr;
    std::unordered_set<Term> seen;
    for (const auto& [site, nest] : nests) {
        if (!winograd_nests(nest, 2, 3) || !seen.insert(plain_statement(nest_parts(nest).statement)).second) continue;
        const Best direct = best_of(nest, host, measurer, tried);
        fmt::print("{}\n  one nest {:.3f} ms\n", to_string(nest_parts(nest).statement), direct.ms);
        for (const int outputs : {2, 4, 6}) {
            const auto row = winograd_nests(nest, outputs, 3);
            double sum = 0;
            std::string parts;
            for (const Term& each : {row->input, row->products, row->output}) {
                const Best b = best_of(each, host, measurer, tried);
                sum += b.ms, parts += fmt::format(" {:.3f}", b.ms) + (b.why.empty() ? "" : " (" + b.why + ")");
                if (verbose) parts += "\n      " + to_string(bare(b.nest)) + "\n     ";
            }
            fmt::print("  F({0},3) {1:.3f} ms ({2:.2f}):{3}\n", outputs, sum, sum / direct.ms, parts);
        }
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return times(argc > 1 ? argv[1] : "zoo:resnet34-cifar10", argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 8); }
