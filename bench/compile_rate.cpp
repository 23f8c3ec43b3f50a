// How many candidates a second one core compiles, from schedule to loadable code: first schedules of the convolutions of resnet34-cifar10.
// Counted in processor time of the compiling thread and of the programs it starts, so that other work on the machine does not matter.
//   bench_compile_rate [CANDIDATES] [MODEL]
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "backends/kernel/loaded_kernel.hpp"
#include "backends/lower/codegen.hpp"
#include "backends/lower/lower_nest.hpp"
#include "backends/network/network.hpp"
#include "backends/target/target_rules.hpp"
#include "graph/load.hpp"

using namespace loopegg;

namespace {

double seconds(const timespec& t) { return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec); }
double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

double spent() {
    timespec mine{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mine);
    rusage started{};
    getrusage(RUSAGE_CHILDREN, &started);
    return seconds(mine) + seconds(started.ru_utime) + seconds(started.ru_stime);
}

struct Quartiles {
    double low, median, high;
};
Quartiles quartiles(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    auto at = [&](double q) { return all[static_cast<std::size_t>(q * static_cast<double>(all.size() - 1))]; };
    return {at(0.25), at(0.5), at(0.75)};
}

// The candidates that tuning measures first, taken in turns from every distinct convolution.
std::vector<Term> candidates(const std::string& model, const Target& host, std::size_t count) {
    const Model m = load_model(model);
    std::map<std::string, std::vector<Term>> by_statement;
    for (const auto& [site, nest] : fused_nests(m.graph, {}, host)) {
        const Term statement = nest_parts(complete(nest)).statement;
        if (to_string(statement).find("conv2d") == std::string::npos) continue;
        by_statement.try_emplace(to_string(statement), schedule_rules(host)->schedules(nest_of(statement_of(statement)), 64));
    }
    std::vector<Term> all;
    for (std::size_t round = 0; all.size() < count; ++round) {
        const std::size_t before = all.size();
        for (const auto& [statement, some] : by_statement)
            if (round < some.size() && all.size() < count) all.push_back(some[round]);
        if (all.size() == before) break;
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 200;
    const Target host = find_target("host");
    const std::vector<Term> all = candidates(argc > 2 ? argv[2] : "zoo:resnet34-cifar10", host, count);
    LoadedKernel{compile_nest(all[0], host, "warm")};  // libraries loaded, passes made
    std::vector<double> each, lowering, passes, code, loading;
    const tv::Obj machine = tv::obj(tv::Fn::target, host.tvm.dump());
    for (const Term& nest : all) {
        double t = spent();
        auto lap = [&](std::vector<double>& to) {
            const double now = spent();
            to.push_back(1e3 * (now - t)), t = now;
        };
        const double began = t;
        const LoweredNest lowered = lower_nest(nest, host, "candidate");  // the steps of compile_nest, one by one
        lap(lowering);
        const tv::Obj module = tv::lower(tv::module_of({{"candidate", lowered.function}}), machine, machine).host;
        lap(passes);
        const Kernel kernel{"__tvm_ffi_candidate", lowered.parameters, {}, {}, 0, tv::object_of(module, machine)};
        lap(code);
        const LoadedKernel loaded(kernel);
        lap(loading);
        each.push_back(1e3 * (t - began));
    }
    double sum = 0;
    for (double ms : each) sum += ms;
    const Quartiles q = quartiles(each);
    fmt::print("{} candidates: {:.2f} a second a core; {:.0f} ms of processor time each (median {:.0f}, quartiles {:.0f} to {:.0f})\n", each.size(),
               1e3 * static_cast<double>(each.size()) / sum, sum / static_cast<double>(each.size()), q.median, q.low, q.high);
    for (const auto& [name, some] : {std::pair("schedule to TIR", &lowering), {"TVM's passes", &passes}, {"LLVM", &code}, {"loading", &loading}}) {
        const Quartiles p = quartiles(*some);
        fmt::print("  {:16} median {:6.1f} ms, quartiles {:6.1f} to {:6.1f}\n", name, p.median, p.low, p.high);
    }
}
