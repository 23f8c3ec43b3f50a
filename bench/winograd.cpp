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
#include "backends/target/schedule_rules.hpp"
#include "backends/target/target.hpp"
#include "graph/load.hpp"
#include "nest/domain/winograd_nests.hpp"
#include "nest/term/winograd.hpp"

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

using Matrix = std::vector<std::vector<double>>;

// One tile of every input channel with its weights, by the transforms as kernels do them: in float32, one dimension
// after the other, then sums over channels in order.
std::vector<float> by_form(const WinogradForm& form, const std::vector<std::vector<float>>& tiles, const std::vector<std::vector<float>>& weights) {
    const auto p = static_cast<std::size_t>(form.products()), m = static_cast<std::size_t>(form.outputs);
    // matrix * x, transposed: two make both dimensions
    auto pass = [](const Matrix& matrix, const std::vector<float>& x, std::size_t rows, std::size_t columns) {
        std::vector<float> out(columns * matrix.size());
        for (std::size_t c = 0; c < columns; ++c)
            for (std::size_t r = 0; r < matrix.size(); ++r) {
                float sum = 0;
                for (std::size_t k = 0; k < rows; ++k)
                    if (matrix[r][k] != 0) sum += static_cast<float>(matrix[r][k]) * x[k * columns + c];
                out[c * matrix.size() + r] = sum;
            }
        return out;
    };
    std::vector<float> products(p * p, 0.0f);
    for (std::size_t c = 0; c < tiles.size(); ++c) {
        const std::vector<float> v = pass(form.input, pass(form.input, tiles[c], p, p), p, p), u = winograd_weights(form, weights[c]);
        for (std::size_t i = 0; i < p * p; ++i) products[i] += u[i] * v[i];
    }
    return pass(form.output, pass(form.output, products, p, p), p, m);
}

int error(int layers) {
    struct Error {
        double largest = 0, sum = 0;
        std::int64_t count = 0;
    };
    constexpr double unit = 1.0 / (1 << 24);
    std::map<int, Error> of;  // 0: directly
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (int layer = 0; layer < layers; ++layer) {
        const std::size_t channels = std::size_t{16} << random() % 6;
        const double spread = std::exp(normal(random)), centre = layer % 2 ? normal(random) : 0;  // every second with a mean: what comes after a ReLU
        const bool signs = layer % 10 == 9;  // adversarial: the signs that make the sums of a transform largest
        for (const int outputs : {2, 4, 6}) {
            const WinogradForm& form = winograd_form(outputs, 3);
            const auto p = static_cast<std::size_t>(form.products()), m = static_cast<std::size_t>(outputs);
            std::vector<std::vector<float>> tiles(channels, std::vector<float>(p * p)), weights(channels, std::vector<float>(9));
            for (auto& t : tiles)
                for (std::size_t i = 0; i < t.size(); ++i)
                    t[i] = static_cast<float>(signs ? (form.input[1][i / p] * form.input[1][i % p] < 0 ? -spread : spread) * (1 + 1e-3 * normal(random))
                                                    : spread * normal(random) + centre);
            for (auto& w : weights)
                for (float& v : w) v = static_cast<float>(normal(random));
            const std::vector<float> got = by_form(form, tiles, weights);
            for (std::size_t o = 0; o < m * m; ++o) {
                double exact = 0, size = 0;
                float plain = 0;
                for (std::size_t c = 0; c < channels; ++c)
                    for (std::size_t k = 0; k < 9; ++k) {
                        const float x = tiles[c][(o / m + k / 3) * p + o % m + k % 3], w = weights[c][k];
                        exact += static_cast<double>(x) * w, size += std::fabs(static_cast<double>(x) * w), plain += x * w;
                    }
                for (const auto& [which, value] : {std::pair(0, plain), std::pair(outputs, got[o])}) {
                    Error& e = of[which];
                    const double off = std::fabs(value - exact) / (unit * size);  // of the sum of absolute values: what an error is in proportion to
                    e.largest = std::max(e.largest, off), e.sum += off, ++e.count;
                }
            }
        }
    }
    for (const auto& [outputs, e] : of)
        fmt::print("{:<10} largest {:8.2f}  mean {:6.3f}  units of float32 ({} outputs of {} layers)\n",
                   outputs == 0 ? "directly" : fmt::format("F({},3)", outputs), e.largest, e.sum / static_cast<double>(e.count), e.count, layers);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::strcmp(argv[1], "error") == 0) return error(argc > 2 ? std::atoi(argv[2]) : 1000);
    return times(argc > 2 ? argv[2] : "zoo:resnet34-cifar10", argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 8);
}
