// Chooses schedules by their times inside the network, because the schedule that is fastest alone is not always fastest among other nests.
#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "backends/measure/latency_store.hpp"
#include "backends/measure/network_measure.hpp"
#include "backends/network/block_candidates.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "base/team.hpp"
#include "optimize/tune/tuning.hpp"

namespace loopegg {
namespace {

// The whole network with one schedule for each site. Versions differ in which of a site's schedules they have.
struct Version {
    Schedules schedules;
    std::map<std::string, Term> nests;  // as they are compiled, by site
    std::map<std::string, double> ms;   // measured inside the network, by site
};

std::vector<Version> versions_of(const Network& network, const Tuning& tuning, const Target& target) {
    std::vector<Version> all(2);  // the best, the next best
    for (const Site& site : network.sites.all) {
        const TunedNest& t = tuning.best[site.kind];
        if (!t.best.latency) continue;
        all[0].schedules[site.name] = t.nest;
        all[1].schedules[site.name] = t.also.empty() ? t.nest : t.also[0];
    }
    std::vector<Version> distinct;
    for (Version& v : all) {
        v.nests = fused_nests(network.graph, v.schedules, target);
        if (std::none_of(distinct.begin(), distinct.end(), [&](const Version& d) { return d.nests == v.nests; })) distinct.push_back(std::move(v));
    }
    return distinct;
}

std::vector<std::string> step_sites(const std::filesystem::path& folder) {
    const nlohmann::json manifest = nlohmann::json::parse(read_file(folder / "network.json"));
    std::vector<std::string> sites;
    for (const auto& step : manifest.at("steps")) sites.push_back(step.at("site"));
    return sites;
}

// Fills in the times, from the store where all of them are known. Returns false where the machine could not measure them.
bool time_inside(std::vector<Version>& versions, const Graph& graph, const Weights& weights, const Target& target, const std::filesystem::path& scratch,
                 KernelCache& kernels) {
    LatencyStore store(default_store());
    std::vector<std::map<std::string, Hash128>> keys(versions.size());
    bool known = true;
    for (std::size_t v = 0; v < versions.size(); ++v) {
        const Term network(Hasher().add(to_string(network_term(graph, versions[v].schedules, target))).finish().hex());
        for (const auto& [site, nest] : versions[v].nests) {
            keys[v][site] = latency_key(target, Term("inside", {Term(site), network}), "inside its network");
            const auto found = store.find(keys[v][site]);
            known = known && found && found->latency;
            if (known) versions[v].ms[site] = found->latency->median_ms;
        }
    }
    if (known) return true;
    const ScratchFolder trying(scratch);
    std::vector<std::filesystem::path> paths;
    for (std::size_t v = 0; v < versions.size(); ++v) paths.push_back(scratch / std::to_string(v));
    // Side by side: while one network is linked, kernels of the next are compiled.
    run_together(versions.size(), [&](std::size_t v) { compile_network({graph, weights, versions[v].schedules}, target, paths[v], nullptr, &kernels); });
    const std::vector<std::vector<double>> times = measure_steps(paths);
    std::vector<std::vector<std::string>> sites_of_steps;
    for (const auto& path : paths) sites_of_steps.push_back(step_sites(path));
    for (std::size_t v = 0; v < versions.size(); ++v) {
        const std::vector<std::string>& sites = sites_of_steps[v];
        if (times[v].size() != sites.size()) return false;
        versions[v].ms.clear();
        for (std::size_t s = 0; s < sites.size(); ++s)
            if (versions[v].nests.contains(sites[s])) versions[v].ms[sites[s]] += times[v][s];
        for (const auto& [site, key] : keys[v]) {
            double& ms = versions[v].ms[site];
            const Measured mine{Latency{ms, 0, 1, target.name, true, false}, ""};
            const Measured stands = store.put_or_find(key, target.name, to_string(versions[v].nests.at(site)), mine, "inside its network");
            if (stands.latency) ms = stands.latency->median_ms;
        }
    }
    return true;
}

}  // namespace

Schedules fastest_in_network(const Run& run, const Network& network, const Tuning& tuning, const std::filesystem::path& scratch, KernelCache& kernels) {
    const Target& target = run.target;
    std::vector<Version> versions = versions_of(network, tuning, target);
    if (versions.size() == 1 || target.reach != Reach::here || !time_inside(versions, network.graph, network.weights, target, scratch, kernels))
        return versions[0].schedules;
    // Sites with the same nests in all versions are one: together they show more, and their kernels stay shared.
    std::map<std::string, std::vector<std::string>> alike;
    for (const auto& [site, nest] : versions[0].nests) {
        std::string nests;
        for (const Version& v : versions) nests += to_string(v.nests.at(site)) + "\n";
        alike[nests].push_back(site);
    }
    Schedules settled;
    for (const auto& [nests, same] : alike) {
        std::vector<double> ms(versions.size(), 0.0);
        for (std::size_t v = 0; v < versions.size(); ++v)
            for (const std::string& site : same) ms[v] += versions[v].ms[site];
        const std::size_t best = static_cast<std::size_t>(std::min_element(ms.begin(), ms.end()) - ms.begin());
        for (const std::string& site : same)
            if (auto found = versions[best].schedules.find(site); found != versions[best].schedules.end()) settled[site] = found->second;
    }
    return settled;
}

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
