// Schedules of networks' nests for a GPU as a bundle: what the estimate likes best, and some of what it likes less, so that measured times can judge it.
//   bench_gpu_schedules OUT TARGET[+tf32] BEST OTHERS MODEL[@BATCH][=SITES]...
// SITES: how many of a model's distinct convolutions. The first MODEL goes in whole as well. What the store knows
// (LOOPEGG_STORE) is not carried again: the whole
// network then has the fastest schedules that are known, so the same command after 'loopegg bundle import OUT' gives a bundle of that network.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "backends/measure/latency_store.hpp"
#include "backends/network/bundle.hpp"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "graph/load.hpp"
#include "nest/term/grammar.hpp"

using namespace loopegg;

int main(int argc, char** argv) try {
    if (argc < 6) return std::fprintf(stderr, "usage: bench_gpu_schedules OUT TARGET[+tf32] BEST OTHERS MODEL[@BATCH][=SITES]...\n"), 2;
    const std::string word = argv[2];
    const auto plus = word.find('+');
    const Target target = allowing(find_target(word.substr(0, plus)), plus == word.npos ? std::vector<std::string>{} : std::vector{word.substr(plus + 1)});
    const auto best = static_cast<std::size_t>(std::atoi(argv[3])), others = static_cast<std::size_t>(std::atoi(argv[4]));
    const auto rules = schedule_rules(target);
    LatencyStore store(default_store());
    std::optional<Model> first;
    Schedules fastest;
    std::vector<Term> nests;
    std::unordered_map<Term, Term> known;  // the fastest of each nest
    for (int i = 5; i < argc; ++i) {
        const std::string word = argv[i];
        const auto equals = word.find('='), at = word.find('@');
        Model model = load_model(word.substr(0, std::min(equals, at)), 0);
        if (at != word.npos) model.graph = with_batch(std::move(model.graph), std::atoi(word.c_str() + at + 1));
        std::size_t most = equals == word.npos ? 1000 : static_cast<std::size_t>(std::atoi(word.c_str() + equals + 1));
        std::vector<Term> distinct;
        for (const auto& [site, nest] : fused_nests(model.graph, {}, find_target("host")))
            if (std::find(distinct.begin(), distinct.end(), nest) == distinct.end()) distinct.push_back(nest);
        rules->prepare(distinct, best + 20 * others);
        for (const auto& [site, nest] : fused_nests(model.graph, {}, target)) {
            if (to_string(nest).find("conv2d") == std::string::npos || (most == 0 && !known.contains(nest))) continue;
            if (const auto same = known.find(nest); same != known.end()) {
                if (!first && same->second) fastest[site] = same->second;
                continue;
            }
            --most;
            const std::vector<Term> all = rules->schedules(nest, best + 20 * others);
            double least = std::numeric_limits<double>::infinity();
            Term& found = known[nest];
            for (std::size_t k = 0; k < all.size(); ++k) {
                if (k >= best && (k - best) % 20 != 19) continue;
                const auto measured = store.find(latency_key(target, complete(all[k])));
                if (!measured)
                    nests.push_back(all[k]);
                else if (measured->latency && measured->latency->measured && measured->latency->median_ms < least)
                    least = measured->latency->median_ms, found = all[k];
            }
            if (!first && found) fastest[site] = found;
            std::fprintf(stderr, "%s: %zu schedules, %.2f us for the first, %.2f for the last\n", site.c_str(), all.size(),
                         gpu_cost(all.front(), gpu_machine(target)), gpu_cost(all.back(), gpu_machine(target)));
        }
        if (!first) first = std::move(model);
    }
    const ScheduledNetwork whole[]{{first->graph, first->weights, fastest}};
    BundleOptions options;
    options.sources = false;
    const BundleReport report = write_bundle(nests, whole, target, argv[1], options);
    for (const std::string& why : report.left_out) std::fprintf(stderr, "left out: %.300s\n", why.c_str());
    std::printf("%d programs, %zu left out\n", report.programs, report.left_out.size());
    return 0;
} catch (const UserError& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
}
