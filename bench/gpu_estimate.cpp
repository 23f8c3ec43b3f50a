// How good the estimate of GPU schedules is, compared with the times of a bundle that ran: for every nest of the bundle, what the schedule that the estimate
// puts first takes over the fastest one, and what the estimate says over what was measured.
//   bench_gpu_estimate BUNDLE TARGET        BUNDLE has its index.json and results.txt
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "nest/schedule/gpu_estimate.hpp"
#include "nest/term/grammar.hpp"

using namespace loopegg;

int main(int argc, char** argv) try {
    if (argc != 3) return std::fprintf(stderr, "usage: bench_gpu_estimate BUNDLE TARGET\n"), 2;
    const std::string folder = argv[1];
    const GpuMachine machine = gpu_machine(find_target(argv[2]));
    std::map<std::string, double> measured;  // microseconds, by program
    std::istringstream results(read_file(folder + "/results.txt"));
    for (std::string line; std::getline(results, line);) {
        std::istringstream words(line);
        std::string key, state;
        double ms = 0;
        if (words >> key >> state >> ms && state == "ok") measured[key] = 1000 * ms;
    }
    struct Schedule {
        double estimate, time;
    };
    std::map<std::string, std::vector<Schedule>> nests;  // by statement
    const auto index = nlohmann::json::parse(read_file(folder + "/index.json"));
    for (const auto& program : index.at("programs")) {
        const std::string what = program.at("what");
        const auto found = measured.find(program.at("key"));
        if (!what.starts_with("(nest") || found == measured.end()) continue;
        const Term nest = parse_term(what);
        nests[to_string(nest[0])].push_back({gpu_cost(nest, machine), found->second});
    }
    double all = 0, worst = 1;
    for (auto& [statement, schedules] : nests) {
        const auto by_time = [](const Schedule& a, const Schedule& b) { return a.time < b.time; };
        const auto by_estimate = [](const Schedule& a, const Schedule& b) { return a.estimate < b.estimate; };
        const Schedule first = *std::min_element(schedules.begin(), schedules.end(), by_estimate);
        const double best = std::min_element(schedules.begin(), schedules.end(), by_time)->time;
        std::printf("%6.2f us by the estimate's first (it said %6.2f), %6.2f us the best of %2zu: %s\n", first.time, first.estimate, best, schedules.size(),
                    statement.c_str());
        all += std::log(first.time / best), worst = std::max(worst, first.time / best);
    }
    if (nests.empty()) return std::fprintf(stderr, "no nest of %s has a time\n", argv[1]), 1;
    std::printf("%zu nests: the estimate's first takes %.3f of the best in the geometric mean, %.2f at worst\n", nests.size(),
                std::exp(all / static_cast<double>(nests.size())), worst);
    return 0;
} catch (const std::exception& e) {
    return std::fprintf(stderr, "error: %s\n", e.what()), 1;
}
