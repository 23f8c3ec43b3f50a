#include "optimize/rivals.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include <fmt/format.h>

namespace loopegg {
namespace {

constexpr std::size_t at_once = 24;

using Random = std::mt19937_64;
std::int64_t one_of(Random& random, std::initializer_list<std::int64_t> all) { return *(all.begin() + static_cast<std::ptrdiff_t>(random() % all.size())); }

// Draws networks until as many as the budget are judged, or until no new network comes.
std::vector<NetworkCandidate> sample(const JudgedSpace& judged, const ShapeSearchOptions& options, Progress& progress, const char* origin,
                                     const std::function<NetworkShape(Random&)>& draw) {
    const auto& [space, judge, clock] = judged;
    Random random(options.seed);
    std::vector<NetworkCandidate> all;
    std::set<NetworkShape> known{NetworkShape{}};
    std::size_t in_vain = 0;
    while (static_cast<std::int64_t>(all.size()) < options.budget && in_vain < 5000) {
        std::vector<NetworkCandidate> some;
        std::vector<Graph> graphs;
        while (some.size() < std::min<std::size_t>(at_once, static_cast<std::size_t>(options.budget) - all.size()) && in_vain < 5000) {
            NetworkShape shape = draw(random);
            std::optional<Graph> graph = known.contains(shape) ? std::nullopt : space.network(shape);
            if (!graph || clock.ms(*graph) > options.max_ms) {
                ++in_vain;
                continue;
            }
            in_vain = 0, known.insert(shape);
            some.push_back({origin, std::move(shape), *graph, {}, clock.ms(*graph)});
            graphs.push_back(std::move(*graph));
        }
        if (some.empty()) break;
        const std::vector<NetworkVerdict> verdicts = judge.judge(graphs);
        for (std::size_t i = 0; i < some.size(); ++i) some[i].judged = verdicts[i], all.push_back(std::move(some[i]));
        progress.advance(static_cast<std::int64_t>(all.size()), fmt::format("{} configurations judged", origin));
    }
    return all;
}

double fisher(const NetworkCandidate& c) {
    const auto& e = c.judged.verdict.evidence;
    return e.is_object() && e.contains("kept") && e["kept"].is_number() ? e["kept"].get<double>() : 0;
}

void narrow(NetworkShape& shape, const ShapeSpace::Width& w, std::int64_t divisor) {
    const std::int64_t whole = w.choices.back(), kept = whole / divisor / w.step * w.step;
    if (divisor > 1 && kept >= w.step && kept < whole) shape.widths[w.name] = kept;
}

}  // namespace

std::vector<NetworkCandidate> random_configurations(const JudgedSpace& judged, const ShapeSearchOptions& options, Progress& progress) {
    const ShapeSpace& space = judged.space;
    return sample(judged, options, progress, "random", [&](Random& random) {
        NetworkShape shape;
        for (const std::string& site : space.groupable())
            if (const std::int64_t g = one_of(random, {1, 1, 2, 4, 8, 16}); g > 1) shape.groups[site] = g;
        for (const ShapeSpace::Width& w : space.widths())
            if (!w.joined) narrow(shape, w, one_of(random, {1, 1, 2, 4}));
        return shape;
    });
}

std::vector<NetworkCandidate> block_swaps(const JudgedSpace& judged, const ShapeSearchOptions& options, Progress& progress) {
    const ShapeSpace& space = judged.space;
    std::vector<NetworkCandidate> all = sample(judged, options, progress, "blockswap", [&](Random& random) {
        NetworkShape shape;
        const auto swap = [&](const std::vector<std::string>& sites, std::int64_t groups, std::int64_t bottleneck) {
            const auto inside = [&](const std::string& name) { return std::find(sites.begin(), sites.end(), name) != sites.end(); };
            for (const std::string& site : space.groupable())
                if (groups > 1 && inside(site)) shape.groups[site] = groups;
            for (const ShapeSpace::Width& w : space.widths())
                if (!w.joined && inside(w.name)) narrow(shape, w, bottleneck);
        };
        for (const ShapeSpace::Depth& d : space.branches()) swap(d.branch.only, one_of(random, {1, 1, 2, 4, 8, 16}), one_of(random, {1, 1, 2, 4}));
        if (space.branches().empty())  // a plain network: every layer is a block
            for (const ShapeSpace::Width& w : space.widths()) swap({w.name}, one_of(random, {1, 1, 2, 4, 8, 16}), one_of(random, {1, 1, 2, 4}));
        return shape;
    });
    std::stable_sort(all.begin(), all.end(), [](const NetworkCandidate& a, const NetworkCandidate& b) { return fisher(a) > fisher(b); });
    return all;
}

}  // namespace loopegg
