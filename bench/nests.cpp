// Times nests of a file of terms on this machine, each beside the fastest.
//   bench_nests FILE
#include <algorithm>
#include <cstdio>
#include <limits>

#include <fmt/format.h>

#include "backends/measure/tvm_measurer.hpp"
#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "nest/term/grammar.hpp"

using namespace loopegg;

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: bench_nests FILE\n", stderr);
        return 2;
    }
    MeasurerOptions options;
    options.store = ":memory:";
    TvmMeasurer measurer(options);
    std::vector<Candidate> all;
    for (const SExpr& nest : read_sexprs(make_source(argv[1], read_file(argv[1])))) all.push_back({complete(to_term(nest)), "host"});
    const std::vector<Measured> times = measurer.measure(all);
    double best = std::numeric_limits<double>::infinity();
    for (const Measured& m : times)
        if (m.latency) best = std::min(best, m.latency->median_ms);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (times[i].latency) fmt::print("{:.4f} ms (iqr {:.4f})  {:.2f}  ", times[i].latency->median_ms, times[i].latency->iqr_ms, times[i].latency->median_ms / best);
        else fmt::print("failed: {}  ", times[i].why);
        fmt::print("{}\n", to_string(bare(all[i].nest)));
    }
}
