// Random GPU schedules as a bundle, each a program whose output must be the reference's: what rules give for nests of all kinds, restricted ones among them,
// and random terms that no rule made.
//   bench_gpu_random OUT TARGET COUNT [SEED]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <unordered_set>

#include "backends/lower/random_nest.hpp"
#include "backends/network/bundle.hpp"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/term/grammar.hpp"

using namespace loopegg;

namespace {

constexpr const char* nests[]{
    "(nest (epilogue relu (epilogue bias (conv2d 1 1 32 16 8 8 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 1 1 32 16 8 8 3 3 2 2 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 2 1 24 32 7 7 1 1 1 1 0 0 1 1) (at n (at co (at ci (at oh (at ow done))))))",
    "(nest (epilogue add (conv2d 1 1 16 32 4 4 3 3 1 1 1 1 1 1)) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 1 2 8 16 6 6 5 5 1 1 2 2 1 1) (at g (at co (at ci (at oh (at ow (at kh (at kw done))))))))",
    "(nest (conv2d 1 24 1 1 14 14 3 3 1 1 1 1 1 1) (at g (at oh (at ow (at kh (at kw done))))))",
    "(nest (epilogue bias (linear 4 40 64)) (at n (at co (at ci done))))",
    "(nest (max_pool 1 8 12 12 3 3 2 2 1 1) (at n (at c (at oh (at ow (at kh (at kw done)))))))",
    "(restore repeat (nest (conv2d 1 1 32 16 8 8 3 3 1 1 1 1 1 1) (at (span co 0 16) (at ci (at oh (at ow (at kh (at kw done))))))))",
    "(nest (conv2d 1 1 32 32 8 8 3 3 1 1 1 1 1 1) (at (diag 4 co ci) (at (rem co 8) (at (rem ci 8) (at oh (at ow (at kh (at kw done))))))))",
};

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 4) return std::fprintf(stderr, "usage: bench_gpu_random OUT TARGET COUNT [SEED]\n"), 2;
    const Target target = find_target(argv[2]);
    const auto count = static_cast<std::size_t>(std::atoi(argv[3]));
    const auto seed = static_cast<std::uint64_t>(argc > 4 ? std::atoll(argv[4]) : 1);
    std::mt19937_64 random(seed);
    const std::size_t by_rules = count / 2 / std::size(nests);
    std::vector<Term> all;
    std::unordered_set<Term> known;
    for (const char* text : nests) {  // of all that the rules give and the search looks at, not the cheapest alone
        std::vector<Term> some = schedule_rules(target)->schedules(complete(parse_term(text)), 8 * by_rules);
        std::shuffle(some.begin(), some.end(), random);
        some.resize(std::min(some.size(), by_rules));
        for (Term& t : some)
            if (known.insert(t).second) all.push_back(std::move(t));
    }
    std::printf("%zu schedules that rules made\n", all.size());
    for (std::uint64_t i = 0; all.size() < count; ++i)
        if (Term t = complete(random_nest(seed * 1'000'000 + i, true)); known.insert(t).second) all.push_back(std::move(t));
    BundleOptions options;
    options.sources = false;
    const BundleReport report = write_bundle(all, {}, target, argv[1], options);
    for (const std::string& why : report.left_out) std::fprintf(stderr, "left out: %.300s\n", why.c_str());
    std::printf("%d programs, %zu left out\n", report.programs, report.left_out.size());
    return 0;
} catch (const UserError& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
}
