// Random terms over all statements, exact and restricted, on all targets: compiled for each to its own machine code, and on this machine
// equal to the reference bit for bit. Outcomes are appended to a file; seeds that it has are not tried again, so a run can be cut anywhere.
//   bench_random_terms FILE [COUNT] [SECONDS] [TARGET...]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "backends/kernel/elf_object.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/lower/nvrtc.hpp"
#include "backends/lower/random_nest.hpp"
#include "base/error.hpp"

using namespace loopegg;

namespace {

// "ok", or what went wrong.
std::string outcome(const Term& nest, const Target& target) try {
    const Kernel kernel = compile_nest(nest, target, "k");
    const std::string architecture = elf_architecture(target.gpu() ? make_cubin(kernel.code, target.architecture()) : kernel.code);
    if (architecture != target.architecture()) return "wrong: code for " + architecture;
    if (target.reach != Reach::here) return "ok";
    const Statement s = statement_of(nest_parts(nest).statement);
    const auto operands = sample_operands(s, 11);
    const LoadedKernel loaded(kernel);
    const std::string wrong = difference(s, kernel_output(kernel, operands, std::cref(loaded)), reference_output(nest, operands));
    return wrong.empty() ? "ok" : "wrong: " + wrong;
} catch (const UserError& e) {
    return std::string("refused: ") + e.what();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: bench_random_terms FILE [COUNT] [SECONDS] [TARGET...]\n"), 2;
    const int count = argc > 2 ? std::atoi(argv[2]) : 2000;
    const double limit = argc > 3 ? std::atof(argv[3]) : 1e9;
    std::vector<std::string> names(argv + std::min(argc, 4), argv + argc);
    if (names.empty()) names = {"host", "i7", "a57", "gtx1080ti", "nano", "h200"};

    std::map<std::string, std::map<int, std::string>> known;  // by target and seed
    {
        std::ifstream in(argv[1]);
        for (std::string line; std::getline(in, line);) {
            char name[64] = {};
            int seed = 0, at = 0;
            if (std::sscanf(line.c_str(), "%63s %d %n", name, &seed, &at) == 2 && at > 0) known[name][seed] = line.substr(static_cast<std::size_t>(at));
        }
    }
    std::vector<std::pair<std::string, int>> todo;
    for (const std::string& name : names)
        for (int seed = 0; seed < count; ++seed)
            if (!known[name].contains(seed)) todo.emplace_back(name, seed);

    std::map<std::string, Target> targets;
    for (const std::string& name : names) targets.emplace(name, find_target(name));
    std::ofstream out(argv[1], std::ios::app);
    std::mutex mutex;
    std::size_t next = 0;
    const auto started = std::chrono::steady_clock::now();
    auto work = [&] {
        for (;;) {
            std::pair<std::string, int> job;
            {
                std::lock_guard lock(mutex);
                if (next >= todo.size() || std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() > limit) return;
                job = todo[next++];
            }
            const Target& target = targets.at(job.first);
            const Term nest = complete(random_nest(static_cast<std::uint64_t>(job.second), target.gpu()));
            std::string said = outcome(nest, target);
            for (char& c : said)
                if (c == '\n') c = ' ';
            std::lock_guard lock(mutex);
            out << job.first << ' ' << job.second << ' ' << said << (said == "ok" ? "" : " in " + to_string(bare(nest))) << std::endl;
            known[job.first][job.second] = said;
        }
    };
    const char* asked = std::getenv("LOOPEGG_THREADS");
    std::vector<std::thread> team;
    for (int t = 1; t < (asked ? std::atoi(asked) : static_cast<int>(std::thread::hardware_concurrency())); ++t) team.emplace_back(work);
    work();
    for (std::thread& t : team) t.join();

    bool all = true;
    for (const std::string& name : names) {
        int ok = 0, refused = 0, wrong = 0;
        for (const auto& [seed, said] : known[name]) ++(said == "ok" ? ok : said.starts_with("refused") ? refused : wrong);
        fmt::print("{:<10} {:5} of {} terms: {} ok, {} refused, {} wrong\n", name, ok + refused + wrong, count, ok, refused, wrong);
        all = all && ok >= count;
    }
    return all ? 0 : 1;
}
