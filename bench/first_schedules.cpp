// How good the order is in which schedules are extracted: measures many of every distinct site of a model and says how much longer than the best
// the first takes, and the best of the first three. The best of many times is also the luckiest. So the first three and the five best are timed again, in
// turns, and only these times are reported.
//   bench_first_schedules [MODEL] [SCHEDULES] [TRIED] [TIMES]    TRIED: at most so many of SCHEDULES, evenly taken in addition to the first three
//                                                                TIMES: all times go to this file, for bench_fit_cpu_costs
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/measure/cold_weights.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "backends/network/network.hpp"
#include "backends/target/target.hpp"
#include "backends/target/target_rules.hpp"
#include "optimize/run/run.hpp"

using namespace loopegg;

namespace {

std::vector<Term> evenly(std::vector<Term> all, std::size_t most) {
    if (all.size() <= most) return all;
    std::vector<Term> some(all.begin(), all.begin() + 3);
    for (std::size_t i = 3; i < most; ++i) some.push_back(all[3 + (i - 3) * (all.size() - 3) / (most - 3)]);
    return some;
}

// With a store of its own, so that no time comes from before.
std::vector<double> times(MeasurerOptions options, const std::vector<Candidate>& candidates) {
    options.store = ":memory:";
    std::vector<double> ms;
    for (const Measured& m : TvmMeasurer(options).measure(candidates)) ms.push_back(m.latency ? m.latency->median_ms : std::numeric_limits<double>::infinity());
    return ms;
}

// The first three candidates, and then the five that took the shortest times.
std::vector<Candidate> promising(const std::vector<Candidate>& all, const std::vector<double>& ms) {
    std::vector<std::size_t> order(all.size() - 3);
    std::iota(order.begin(), order.end(), std::size_t{3});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ms[a] < ms[b]; });
    std::vector<Candidate> some(all.begin(), all.begin() + 3);
    for (std::size_t i = 0; i < std::min<std::size_t>(5, order.size()); ++i) some.push_back(all[order[i]]);
    return some;
}

std::vector<double> median_times(const MeasurerOptions& options, const std::vector<Candidate>& candidates, int rounds) {
    std::vector<std::vector<double>> all(candidates.size());
    for (int r = 0; r < rounds; ++r) {
        const std::vector<double> ms = times(options, candidates);
        for (std::size_t i = 0; i < ms.size(); ++i) all[i].push_back(ms[i]);
    }
    std::vector<double> medians;
    for (std::vector<double>& one : all) {
        std::nth_element(one.begin(), one.begin() + rounds / 2, one.end());
        medians.push_back(one[static_cast<std::size_t>(rounds / 2)]);
    }
    return medians;
}

void keep(const std::string& file, const std::vector<Candidate>& candidates, const std::vector<double>& ms) {
    std::ofstream out(file, std::ios::app);
    for (std::size_t i = 0; i < ms.size(); ++i)
        if (ms[i] < std::numeric_limits<double>::infinity()) out << nlohmann::json{{"nest", to_string(candidates[i].nest)}, {"ms", ms[i]}} << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    const std::string model = argc > 1 ? argv[1] : "zoo:resnet34-cifar10";
    const std::size_t limit = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 300, tried = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 100;
    const std::string times_file = argc > 4 ? argv[4] : "";
    const Target host = find_target("host");
    OptimizeRequest request;
    request.model = model;
    const ReadNetwork read = read_network(request);
    const Network& input = read.network;
    MeasurerOptions options;
    options.cold_bytes = cold_bytes_for(input.weights);
    const std::map<std::string, Term> nests = fused_nests(input.graph, {}, host);
    double first_sum = 0, three_sum = 0;
    int count = 0;
    for (const SiteKind& kind : input.sites.kinds) {
        const Term& nest = nests.at(input.sites.all[kind.sites.front()].name);
        std::vector<Candidate> candidates;
        for (const Term& t : evenly(schedule_rules(host)->schedules(nest, limit), std::max<std::size_t>(tried, 4))) candidates.push_back({t, host.name});
        if (candidates.size() < 3) continue;
        const std::vector<double> once = times(options, candidates);
        const std::vector<Candidate> again = promising(candidates, once);
        const std::vector<double> ms = median_times(options, again, 5);
        if (!times_file.empty()) keep(times_file, candidates, once), keep(times_file, again, ms);
        const double best = *std::min_element(ms.begin(), ms.end()), three = *std::min_element(ms.begin(), ms.begin() + 3);
        ++count, first_sum += ms[0] / best, three_sum += three / best;
        fmt::print("{:.2f} {:.2f}  {:.3f} ms, best of {}  {}\n", ms[0] / best, three / best, best, candidates.size(), to_string(nest_parts(nest).statement));
        std::fflush(stdout);
    }
    if (count > 0)
        fmt::print("{:.3f} {:.3f}  mean over {} nests: the first, the best of the first three, relative to the best\n", first_sum / count, three_sum / count,
                   count);
}
