#include "optimize/tune/blocks.hpp"

#include <fmt/format.h>

#include "backends/network/block_candidates.hpp"

namespace loopegg {

Schedules with_blocks(const Run& run, const Graph& graph, Schedules schedules) {
    if (run.request.strict_fp || run.target.gpu() || run.target.on_board()) return schedules;
    for (const BlockChain& chain : block_chains(graph, run.target)) {
        const auto given = schedules.find(chain.site);
        if (chain.forms.empty() || (given != schedules.end() && !given->second.is("nest", 2))) continue;
        run.progress.advance(0, fmt::format("trying what follows {} block by block", chain.site));
        const std::vector<Term> nests = block_candidates(chain, run.target);
        std::vector<Candidate> candidates;
        for (const Term& nest : nests) candidates.push_back({nest, run.request.target});
        const std::vector<Measured> times = run.timing.nests.measure(candidates);
        std::size_t best = nests.size();
        for (std::size_t i = 0; i < nests.size(); ++i)
            if (times[i].latency && (best == nests.size() || times[i].latency->median_ms < times[best].latency->median_ms)) best = i;
        if (best < nests.size()) schedules[chain.site] = nests[best];
    }
    return schedules;
}

}  // namespace loopegg
