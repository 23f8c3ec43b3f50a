// Convolutions of 3x3 as transforms and products, beside one nest each: times of both, and how much their float32 errs.
//   bench_winograd times [MODEL] [TRIED]    every distinct 3x3 convolution of stride 1: the best of TRIED first schedules of each nest
//   bench_winograd error [LAYERS]           the largest and the mean error over so many random layers, as multiples of float32's unit of the output's size
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <unordered_set>

#include <fmt/format.h>

#include "backends/measure/cold_weights.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "backends/network/network.hpp"
#include "backends/target/target.hpp"
#include "base/sexpr.hpp"
#include "graph/load.hpp"
#include "nest/domain/winograd_nests.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/schedule/sketch.hpp"
#include "nest/schedule/transform_schedules.hpp"
#include "nest/term/value.hpp"
#include "nest/term/winograd.hpp"

using namespace loopegg;

namespace {

struct Best {
    double ms = std::numeric_limits<double>::infinity();
    Term nest;
    std::string why;
};

Best best_of(const Term& nest, const Target& target, TvmMeasurer& measurer, std::size_t tried) {
    const VectorMachine machine{target.machine.cores, target.machine.lanes, 32};
    std::vector<Term> all = transform_schedules(nest, machine);
    if (all.empty()) all = sketches(nest, machine, tried);
    all.resize(std::min(all.size(), tried));
    std::vector<Candidate> candidates;
    for (const Term& t : all) candidates.push_back({t, target.name});
    const std::vector<Measured> times = measurer.measure(candidates);
    Best best;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (!times[i].latency) best.why = times[i].why;
        else if (times[i].latency->median_ms < best.ms) best = {times[i].latency->median_ms, all[i], ""};
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

// One convolution of a whole image in double precision, and by a form in float32, where every step is rounded.
struct Error { double largest = 0, sum = 0; std::int64_t count = 0; };

int error(int layers) {
    constexpr double unit = 1.0 / (1 << 24);
    std::map<int, Error> of;   // 0: directly
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (int layer = 0; layer < layers; ++layer) {
        const std::int64_t channels = 4 << random() % 3, size = 6 + static_cast<std::int64_t>(random() % 7);
        const Term conv = parse_term(fmt::format("(conv2d 1 1 4 {} {} {} 3 3 1 1 1 1 1 1)", channels, size, size));
        const Statement s = statement_of(conv);
        const Term site("site", {nest_of(s)});
        const double spread = std::exp(normal(random)), centre = layer % 2 ? normal(random) : 0;   // every second with a mean: what comes after a ReLU
        Operands operands(2);
        operands[0].resize(static_cast<std::size_t>(4 * channels * 9)), operands[1].resize(static_cast<std::size_t>(channels * size * size));
        for (auto& o : operands)
            for (float& v : o) v = static_cast<float>(spread * normal(random) + centre);
        std::vector<double> exact(static_cast<std::size_t>(4 * size * size), 0);
        double largest = 0;   // of the sums of absolute values: what an error is in proportion to
        for (std::int64_t o = 0; o < 4; ++o)
            for (std::int64_t y = 0; y < size; ++y)
                for (std::int64_t x = 0; x < size; ++x) {
                    double sum = 0, absolute = 0;
                    for (std::int64_t c = 0; c < channels; ++c)
                        for (std::int64_t k = 0; k < 9; ++k) {
                            const std::int64_t iy = y + k / 3 - 1, ix = x + k % 3 - 1;
                            if (iy < 0 || ix < 0 || iy >= size || ix >= size) continue;
                            const double v = static_cast<double>(operands[0][static_cast<std::size_t>((o * channels + c) * 9 + k)]) * operands[1][static_cast<std::size_t>((c * size + iy) * size + ix)];
                            sum += v, absolute += std::fabs(v);
                        }
                    exact[static_cast<std::size_t>((o * size + y) * size + x)] = sum, largest = std::max(largest, absolute);
                }
        for (const int outputs : {0, 2, 4, 6}) {
            Term value = site;
            if (outputs > 0) {
                const auto row = winograd_nests(site[0], outputs, 3);
                value = Term("prepare", {Term("winograd", {Term(outputs), Term(3)}), Term("then", {Term("then", {Term("site", {row->input}), row->products}), row->output})});
            }
            const std::vector<float> got = interpret_value(value, operands);
            for (std::size_t i = 0; i < got.size(); ++i) {
                const double e = std::fabs(got[i] - exact[i]) / (unit * largest);
                of[outputs].largest = std::max(of[outputs].largest, e), of[outputs].sum += e, ++of[outputs].count;
            }
        }
    }
    for (const auto& [outputs, e] : of)
        fmt::print("{:<10} largest {:8.2f}  mean {:6.3f}  units of float32 ({} outputs of {} layers)\n", outputs == 0 ? "directly" : fmt::format("F({},3)", outputs), e.largest, e.sum / static_cast<double>(e.count), e.count, layers);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::strcmp(argv[1], "error") == 0) return error(argc > 2 ? std::atoi(argv[2]) : 1000);
    return times(argc > 2 ? argv[2] : "zoo:resnet34-cifar10", argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 8);
}
