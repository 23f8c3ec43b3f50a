// Schedules of networks' nests for a GPU as a bundle: what the estimate likes best, and some of what it likes less, so that measured times can judge it.
//   bench_gpu_schedules OUT TARGET BEST OTHERS MODEL[=SITES]...   the first MODEL goes in whole as well; SITES: how many of its distinct convolutions
#include <cstdio>
#include <cstdlib>
#include <unordered_set>

#include "backends/network/bundle.hpp"
#include "backends/target/schedule_rules.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "graph/load.hpp"

using namespace loopegg;

int main(int argc, char** argv) try {
    if (argc < 6) return std::fprintf(stderr, "usage: bench_gpu_schedules OUT TARGET BEST OTHERS MODEL[=SITES]...\n"), 2;
    const Target target = find_target(argv[2]);
    const auto best = static_cast<std::size_t>(std::atoi(argv[3])), others = static_cast<std::size_t>(std::atoi(argv[4]));
    const auto rules = schedule_rules(target);
    std::optional<Model> first;
    std::vector<Term> nests;
    std::unordered_set<Term> known;
    for (int i = 5; i < argc; ++i) {
        const std::string word = argv[i];
        const auto equals = word.find('=');
        Model model = load_model(word.substr(0, equals), 0);
        std::size_t most = equals == word.npos ? 1000 : static_cast<std::size_t>(std::atoi(word.c_str() + equals + 1));
        for (const auto& [site, nest] : fused_nests(model.graph, {}, target)) {
            if (to_string(nest).find("conv2d") == std::string::npos || !known.insert(nest).second || most == 0) continue;
            --most;
            const std::vector<Term> all = rules->schedules(nest, best + 20 * others);
            for (std::size_t k = 0; k < all.size(); ++k)
                if (k < best || (k - best) % 20 == 19) nests.push_back(all[k]);
            std::fprintf(stderr, "%s: %zu schedules, %.2f us for the first, %.2f for the last\n", site.c_str(), all.size(),
                         gpu_cost(all.front(), gpu_machine(target)), gpu_cost(all.back(), gpu_machine(target)));
        }
        if (!first) first = std::move(model);
    }
    const BundledNetwork whole[]{{first->graph, first->weights, {}}};
    const BundleReport report = write_bundle(nests, whole, target, argv[1]);
    for (const std::string& why : report.left_out) std::fprintf(stderr, "left out: %.300s\n", why.c_str());
    std::printf("%d programs, %zu left out\n", report.programs, report.left_out.size());
    return 0;
} catch (const UserError& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
}
