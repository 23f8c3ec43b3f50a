// Fits the costs of cpu_costs.hpp to measured schedules, and shows how good the first schedule is by costs that were fitted to the other networks.
//   bench_fit_cpu_costs TIMES...    each file holds the times of one network (bench_first_schedules MODEL SCHEDULES TRIED TIMES)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/target/target.hpp"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/schedule/cpu_estimate.hpp"

using namespace loopegg;

namespace {

constexpr double sharpness = 15;     // how much rather a cheaper schedule is taken: a tenth cheaper, four times as often
constexpr double keeps_near = 0.01;  // what it costs that a constant is e times as large as before

struct Schedule {
    NaiveLoops loops;
    std::vector<CpuPart> parts;
    double ms;
};
using Nest = std::vector<Schedule>;  // the measured schedules of one nest
struct Network {
    std::string file;
    std::vector<Nest> nests;
};

Network read_network(const std::string& file) {
    std::map<std::string, std::map<std::string, double>> times;  // by naive nest, by scheduled nest; a later time is a better one
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        const nlohmann::json one = nlohmann::json::parse(line);
        const Term nest = parse_term(one.at("nest").get<std::string>());
        const NestParts parts = nest_parts(nest);
        const Term naive = schedule_of(statement_of(parts.statement), domain_of(nest));
        if (naive.is("cat", 2)) continue;  // the parts of a domain that was cut are arranged each by itself
        times[to_string(nest_from({parts.statement, naive, parts.restore}))][to_string(nest)] = one.at("ms");
    }
    Network network{file, {}};
    for (const auto& [naive, all] : times) {
        const Term loops = nest_parts(parse_term(naive)).schedule;
        Nest nest;
        for (const auto& [text, ms] : all) {
            const NestParts parts = nest_parts(parse_term(text));
            const NaiveLoops of = naive_loops(statement_of(parts.statement), loops);
            nest.push_back({of, cpu_parts(of, parts.schedule), ms});
        }
        if (nest.size() > 3) network.nests.push_back(std::move(nest));
    }
    if (network.nests.empty()) throw UserError("'" + file + "' has no nest with more than three times: expected what bench_first_schedules wrote");
    return network;
}

double cost(const Schedule& s, const VectorMachine& machine, const CpuCosts& costs) { return cpu_cost(s.loops, s.parts, machine, costs); }

double best_time(const Nest& nest) {
    return std::min_element(nest.begin(), nest.end(), [](const Schedule& a, const Schedule& b) { return a.ms < b.ms; })->ms;
}

// How much longer than the best the cheapest schedule takes.
double first_over_best(const Nest& nest, const VectorMachine& machine, const CpuCosts& costs) {
    const auto cheaper = [&](const Schedule& a, const Schedule& b) { return cost(a, machine, costs) < cost(b, machine, costs); };
    return std::min_element(nest.begin(), nest.end(), cheaper)->ms / best_time(nest);
}

// The same where a cheaper schedule is taken rather than a dearer one, but not always: small changes of the costs change it a little.
double likely_beside_best(const Nest& nest, const VectorMachine& machine, const CpuCosts& costs) {
    std::vector<double> logs;
    for (const Schedule& s : nest) logs.push_back(std::log(std::max(1e-3, cost(s, machine, costs))));
    const double least = *std::min_element(logs.begin(), logs.end());
    double weights = 0, sum = 0;
    for (std::size_t i = 0; i < nest.size(); ++i) {
        const double w = std::exp(-sharpness * (logs[i] - least));
        weights += w, sum += w * nest[i].ms;
    }
    return sum / weights / best_time(nest);
}

template <class Measure>
double mean_over(std::span<const Network* const> networks, Measure measure) {  // each network counts alike
    double all = 0;
    for (const Network* n : networks) {
        double sum = 0;
        for (const Nest& nest : n->nests) sum += measure(nest);
        all += sum / static_cast<double>(n->nests.size());
    }
    return all / static_cast<double>(networks.size());
}

// Changes one constant at a time, as long as the networks gain by it.
CpuCosts fit(std::span<const Network* const> networks, const VectorMachine& machine, const CpuCosts& from) {
    CpuCosts costs = from;
    const auto value = [&] {
        double far = 0;
        for (const CpuCost& c : all_cpu_costs()) far += std::pow(std::log(costs.*c.value / from.*c.value), 2);
        return mean_over(networks, [&](const Nest& nest) { return likely_beside_best(nest, machine, costs); }) + keeps_near * far;
    };
    double best = value();
    for (bool better = true; better;) {
        better = false;
        for (const CpuCost& c : all_cpu_costs()) {
            const double old = costs.*c.value;
            double kept = old;
            for (const double factor : {0.5, 0.8, 0.93, 1.07, 1.25, 2.0}) {
                costs.*c.value = old * factor;
                if (const double v = value(); v < best - 1e-5) best = v, kept = old * factor;
            }
            costs.*c.value = kept;
            better = better || kept != old;
        }
    }
    return costs;
}

}  // namespace

int main(int argc, char** argv) {
    const VectorMachine machine = vector_machine(find_target("host"));
    const CpuCosts shipped = shipped_cpu_costs();
    std::vector<Network> networks;
    try {
        for (int i = 1; i < argc; ++i) networks.push_back(read_network(argv[i]));
    } catch (const UserError& e) {
        fmt::print(stderr, "{}\n", e.what());
        return 1;
    }
    std::vector<const Network*> all;
    for (const Network& n : networks) all.push_back(&n);
    const auto ratio_with = [&](const Network& n, const CpuCosts& costs) {
        const Network* one[] = {&n};
        return mean_over(one, [&](const Nest& nest) { return first_over_best(nest, machine, costs); });
    };
    for (const Network& n : networks) {
        std::vector<const Network*> others;
        for (const Network* o : all)
            if (o != &n) others.push_back(o);
        const std::string left_out =
            others.empty() ? "" : fmt::format(", by costs fitted to the other networks {:.3f}", ratio_with(n, fit(others, machine, shipped)));
        fmt::print("{}: {} nests; the first relative to the best with the shipped costs {:.3f}{}\n", n.file, n.nests.size(), ratio_with(n, shipped), left_out);
        std::fflush(stdout);
    }
    if (networks.empty()) return 2;
    const CpuCosts fitted = fit(all, machine, shipped);
    for (const Network& n : networks) fmt::print("{}: by costs fitted to all networks {:.3f}\n", n.file, ratio_with(n, fitted));
    for (const CpuCost& c : all_cpu_costs())
        fmt::print("    .{} = {:.4g},{}\n", c.name, fitted.*c.value, fitted.*c.value == shipped.*c.value ? "" : "  // fitted");
}
