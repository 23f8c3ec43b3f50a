// Whether measuring stays as it is over a long run.
//   bench_steady memory [COUNT]   many candidates in one run; the resident memory of this process at its start, along the way, and at its end
//   bench_steady times [COUNT]    one kernel timed again and again: alone, then with processes that burn one core and all cores
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "backends/lower/default_schedule.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "base/sexpr.hpp"

using namespace loopegg;

namespace {

double resident_mb() {
    std::ifstream in("/proc/self/statm");
    double all = 0, resident = 0;
    in >> all >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1048576;
}

MeasurerOptions options() {
    MeasurerOptions o;
    o.store = ":memory:";
    return o;
}

int memory(int count) {
    MeasurerOptions o = options();
    o.rounds = 1, o.samples = 1, o.batch = 64;
    TvmMeasurer measurer(o);
    int ok = 0;
    double after_first = 0, last = 0;
    constexpr int step = 500;
    fmt::print("{:>6} candidates: {:.1f} MB\n", 0, resident_mb());
    for (int at = 0; at < count; at += step) {
        std::vector<Candidate> some;
        for (int i = at; i < std::min(count, at + step); ++i) {
            const int width = 1 + i % 100, height = 1 + i / 100;
            some.push_back({parse_term(fmt::format("(nest (linear {} {} 4) (at n (at co (at ci done))))", height, width)), "host"});
        }
        for (const Measured& m : measurer.measure(some)) ok += m.latency.has_value();
        last = resident_mb();
        if (at == 0) after_first = last;
        fmt::print("{:>6} candidates: {:.1f} MB\n", std::min(count, at + step), last);
        std::fflush(stdout);
    }
    const TvmMeasurer::Counts& c = measurer.counts();
    fmt::print("{} asked, {} compiled, {} timed, {} failed, {} from the store; {:+.1f} MB from the first {} to the end\n", c.asked, c.compiled, c.timed,
               c.failed, c.from_store, last - after_first, step);
    return ok == count ? 0 : 1;
}

pid_t burner() {
    const pid_t child = fork();
    if (child == 0)
        for (;;) asm volatile("");
    return child;
}

int times(int count) {
    const Term nest = default_nest(statement_of(parse_term("(conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1)")), find_target("host"));
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    for (int burners : {0, 1, cores}) {
        std::vector<pid_t> children;
        for (int i = 0; i < burners; ++i) children.push_back(burner());
        std::vector<double> medians;
        double widest = 0;
        int marked = 0;
        for (int i = 0; i < count; ++i) {
            TvmMeasurer measurer(options());  // a store of its own: nothing is known
            const Candidate one[]{{nest, "host"}};
            const Measured m = measurer.measure(one)[0];
            if (!m.latency) return fmt::print("failed: {}\n", m.why), 1;
            medians.push_back(m.latency->median_ms);
            widest = std::max(widest, m.latency->iqr_ms / m.latency->median_ms);
            marked += m.latency->disturbed;
        }
        for (pid_t child : children) kill(child, SIGKILL), waitpid(child, nullptr, 0);
        std::sort(medians.begin(), medians.end());
        fmt::print(
            "{} of {} cores burned: {} medians from {:.4f} to {:.4f} ms (middle {:.4f}); quartiles of one figure at most {:.1f}% apart; {} of {} marked as "
            "disturbed\n",
            burners, cores, count, medians.front(), medians.back(), medians[medians.size() / 2], 100 * widest, marked, count);
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "memory") return memory(argc > 2 ? std::atoi(argv[2]) : 10000);
    if (what == "times") return times(argc > 2 ? std::atoi(argv[2]) : 20);
    return std::fprintf(stderr, "usage: bench_steady memory|times [COUNT]\n"), 2;
}
