// Times nests of a file of terms on this machine, each compared with the fastest.
//   bench_nests FILE [SCHEDULES [MIB]]    SCHEDULES: so many schedules that the rules give for each nest, in the order in which they are tried;
//                                         0: the nests as they are. MIB: weights come from so much memory, one copy after the other, as inside a network
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "backends/measure/tvm_measurer.hpp"
#include "backends/target/target_rules.hpp"
#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "nest/term/grammar.hpp"

using namespace loopegg;

int main(int argc, char** argv) {
    if (argc < 2 || argc > 4) {
        std::fputs("usage: bench_nests FILE [SCHEDULES [MIB]]\n", stderr);
        return 2;
    }
    MeasurerOptions options;
    options.store = ":memory:";
    if (argc == 4) options.cold_bytes = std::strtol(argv[3], nullptr, 10) << 20;
    TvmMeasurer measurer(options);
    std::vector<Candidate> all;
    const Target host = find_target("host");
    const std::size_t schedules = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
    for (const SExpr& text : read_sexprs(make_source(argv[1], read_file(argv[1])))) {
        const Term nest = complete(to_term(text));
        if (schedules == 0)
            all.push_back({nest, host.name});
        else
            for (const Term& t : schedule_rules(host)->schedules(nest, schedules)) all.push_back({t, host.name});
    }
    const std::vector<Measured> times = measurer.measure(all);
    double best = std::numeric_limits<double>::infinity();
    for (const Measured& m : times)
        if (m.latency) best = std::min(best, m.latency->median_ms);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (times[i].latency)
            fmt::print("{:.4f} ms (iqr {:.4f})  {:.2f}  ", times[i].latency->median_ms, times[i].latency->iqr_ms, times[i].latency->median_ms / best);
        else
            fmt::print("failed: {}  ", times[i].why);
        fmt::print("{}\n", to_string(bare(all[i].nest)));
    }
}
