// Convolutions as transforms and products, compared with one nest each: the times of both.
//   bench_bilinear [MODEL] [TRIED] [RULES] NAME...    every distinct convolution of stride 1 that an algorithm of RULES takes: the best of TRIED first
//                                                     schedules of each nest, by each algorithm NAME (all of RULES where none is named)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "backends/measure/cold_weights.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "backends/network/network.hpp"
#include "backends/target/target.hpp"
#include "backends/target/target_rules.hpp"
#include "base/places.hpp"
#include "graph/load.hpp"
#include "nest/domain/bilinear_nests.hpp"
#include "rules/load.hpp"

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

struct Pair {
    std::string name;
    BilinearPair algorithms;
};

// Every algorithm down columns and along rows at once, and with a single tap in the other direction.
std::vector<Pair> pairs_of(const std::vector<NamedAlgorithm>& known, const std::vector<std::string>& wanted) {
    std::vector<Pair> all;
    for (const NamedAlgorithm& a : known) {
        if (a.form.taps() == 1 || (!wanted.empty() && std::find(wanted.begin(), wanted.end(), a.name) == wanted.end())) continue;
        all.push_back({a.name, {a.form, a.form}});
        for (const NamedAlgorithm& one : known)
            if (one.form.taps() == 1)
                all.push_back({a.name + " along rows", {one.form, a.form}}), all.push_back({a.name + " down columns", {a.form, one.form}});
    }
    return all;
}

void times(const Term& nest, const std::vector<Pair>& pairs, const Target& host, TvmMeasurer& measurer, std::size_t tried) {
    std::optional<Best> direct;
    for (const auto& [name, algorithms] : pairs) {
        const auto row = bilinear_nests(nest, algorithms);
        if (!row) continue;
        if (!direct) {
            direct = best_of(nest, host, measurer, tried);
            fmt::print("{}\n  one nest {:.3f} ms\n", to_string(nest_parts(nest).statement), direct->ms);
        }
        double sum = 0;
        std::string parts;
        for (const Term& each : {row->input, row->products, row->output}) {
            const Best b = best_of(each, host, measurer, tried);
            sum += b.ms, parts += fmt::format(" {:.3f}", b.ms) + (b.why.empty() ? "" : " (" + b.why + ")");
            if (std::getenv("SHOW") != nullptr) parts += "\n      " + to_string(bare(b.nest)) + "\n     ";
        }
        fmt::print("  {} {:.3f} ms ({:.2f}):{}\n", name, sum, sum / direct->ms, parts);
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const Target host = find_target("host");
    const Model input = load_model(argc > 1 ? argv[1] : "zoo:resnet34-cifar10");
    const std::size_t tried = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 8;
    const Loaded rules = check_rules(argc > 3 ? std::filesystem::path(argv[3]) : shipped("rules/algorithms.rules"));
    const std::vector<Pair> pairs = pairs_of(rules.algorithms, argc > 4 ? std::vector<std::string>(argv + 4, argv + argc) : std::vector<std::string>());
    MeasurerOptions options;
    options.cold_bytes = cold_bytes_for(input.weights);
    TvmMeasurer measurer(options);
    std::unordered_set<Term> seen;
    for (const auto& [site, nest] : fused_nests(input.graph, {}, host))
        if (seen.insert(plain_statement(nest_parts(nest).statement)).second) times(nest, pairs, host, measurer, tried);
}
