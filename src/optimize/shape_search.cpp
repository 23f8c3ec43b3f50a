#include "optimize/shape_search.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include <fmt/format.h>

#include "graph/flops.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

constexpr double work_part = 0.9;   // of a site's time; the rest goes with what it writes

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }
bool one_in(Random& random, std::size_t n) { return random() % n == 0; }

class ShapeSearch {
public:
    ShapeSearch(const ShapeSpace& space, NetworkJudge& judge, const SiteClock& clock, const ShapeSearchOptions& options, Progress& progress)
        : space_(space), judge_(judge), clock_(clock), options_(options), progress_(progress), random_(options.seed) {}

    std::vector<NetworkCandidate> run() {
        ask(naive_scalings(space_));
        while (left() > 0 && !all_.empty()) {
            const std::size_t before = all_.size();
            ask(children());
            if (all_.size() == before) break;   // nothing that is not known
        }
        return std::move(all_);
    }

private:
    static constexpr std::size_t parents = 10, each_time = 12, tries = 400;

    std::int64_t left() const { return options_.budget - static_cast<std::int64_t>(all_.size()); }

    void ask(std::vector<std::pair<std::string, NetworkShape>> shapes) {
        std::vector<Graph> graphs;
        std::vector<NetworkCandidate> made;
        for (auto& [origin, shape] : shapes) {
            if (static_cast<std::int64_t>(made.size()) >= left()) break;
            std::optional<Graph> graph = space_.network(shape);
            if (!graph || !known_.insert(shape).second) continue;
            made.push_back({origin, shape, *graph, {}, clock_.ms(*graph)});
            graphs.push_back(std::move(*graph));
        }
        if (made.empty()) return;
        const std::vector<NetworkVerdict> verdicts = judge_.judge(graphs);
        for (std::size_t i = 0; i < made.size(); ++i) made[i].judged = verdicts[i], all_.push_back(std::move(made[i]));
        progress_.advance(static_cast<std::int64_t>(all_.size()), told());
    }

    std::string told() const {
        const NetworkCandidate* best = nullptr;
        for (const NetworkCandidate& c : all_)
            if (c.judged.allowed && (!best || c.ms < best->ms)) best = &c;
        return best ? fmt::format("whole networks judged; the fastest that is allowed takes about {:.2f} ms ({})", best->ms, best->origin) : std::string("whole networks judged; none is allowed yet");
    }

    // Of many changes to the best networks, those that would be fastest without being further from what is allowed than their parents, by the clock;
    // the guard decides.
    std::vector<std::pair<std::string, NetworkShape>> children() {
        std::vector<std::size_t> order(all_.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return fitness(all_[a], options_.max_ms) < fitness(all_[b], options_.max_ms); });
        order.resize(std::min(order.size(), parents));
        const double best = all_[order.front()].ms;
        std::vector<std::pair<std::string, NetworkShape>> out;
        std::set<NetworkShape> mine;
        for (std::size_t t = 0; t < tries && out.size() < each_time; ++t) {
            const NetworkCandidate& parent = all_[order[std::min(below(random_, order.size()), below(random_, order.size()))]];
            NetworkShape shape = one_in(random_, 4) ? crossed(parent.shape, all_[order[below(random_, order.size())]].shape) : parent.shape;
            for (std::size_t changes = 1 + below(random_, 3); changes > 0; --changes) change(shape);
            if (known_.contains(shape) || !mine.insert(shape).second) continue;
            const std::optional<Graph> graph = space_.network(shape);
            // Much slower than the best, or much faster: too far away to learn from.
            if (!graph || clock_.ms(*graph) > 1.3 * best || clock_.ms(*graph) < 0.4 * best) continue;
            out.emplace_back("rules", std::move(shape));
        }
        return out;
    }

    NetworkShape crossed(const NetworkShape& a, const NetworkShape& b) {
        std::vector<bool> from_b(space_.stages());
        for (std::size_t s = 0; s < from_b.size(); ++s) from_b[s] = one_in(random_, 2);
        NetworkShape out;
        for (const ShapeSpace::Depth& d : space_.branches())
            if ((from_b[d.stage] ? b : a).dropped.contains(d.branch.site)) out.dropped.insert(d.branch.site);
        for (const ShapeSpace::Width& w : space_.widths()) {
            const auto& widths = (from_b[w.stage] ? b : a).widths;
            if (const auto it = widths.find(w.name); it != widths.end()) out.widths.insert(*it);
        }
        out.groups = a.groups;
        return out;
    }

    void change(NetworkShape& shape) {
        const bool deep = !space_.branches().empty(), wide = !space_.widths().empty(), groups = !space_.groupable().empty();
        if (deep && one_in(random_, 3)) change_depth(shape);
        else if (groups && one_in(random_, 6)) change_groups(shape);
        else if (wide) change_width(shape);
    }

    void change_depth(NetworkShape& shape) {
        const std::string& site = space_.branches()[below(random_, space_.branches().size())].branch.site;
        if (!shape.dropped.erase(site)) shape.dropped.insert(site);
    }

    void change_groups(NetworkShape& shape) {
        const std::string& site = space_.groupable()[below(random_, space_.groupable().size())];
        const std::int64_t groups = std::int64_t{1} << below(random_, 4);
        if (groups == 1) shape.groups.erase(site);
        else shape.groups[site] = groups;
    }

    // One width, or all hidden ones of a stage, an eighth up or down.
    void change_width(NetworkShape& shape) {
        const ShapeSpace::Width& picked = space_.widths()[below(random_, space_.widths().size())];
        const int by = one_in(random_, 2) ? 1 : -1;
        const bool all = !picked.joined && one_in(random_, 2);
        for (const ShapeSpace::Width& w : space_.widths())
            if (w.name == picked.name || (all && !w.joined && w.stage == picked.stage)) shift(shape, w, by);
    }

    static void shift(NetworkShape& shape, const ShapeSpace::Width& w, int by) {
        const auto it = shape.widths.find(w.name);
        const std::int64_t now = it == shape.widths.end() ? w.choices.back() : it->second;
        const auto at = std::lower_bound(w.choices.begin(), w.choices.end(), now) - w.choices.begin();
        const auto next = std::clamp<std::ptrdiff_t>(at + by, 0, static_cast<std::ptrdiff_t>(w.choices.size()) - 1);
        const std::int64_t kept = w.choices[static_cast<std::size_t>(next)];
        if (kept == w.choices.back()) shape.widths.erase(w.name);
        else shape.widths[w.name] = kept;
    }

    const ShapeSpace& space_;
    NetworkJudge& judge_;
    const SiteClock& clock_;
    const ShapeSearchOptions options_;
    Progress& progress_;
    Random random_;
    std::vector<NetworkCandidate> all_;
    std::set<NetworkShape> known_{NetworkShape{}};
};

}  // namespace

double fitness(const NetworkCandidate& c, double max_ms) {
    if (std::isfinite(max_ms)) return c.judged.loss.points + 20 * std::max(0.0, c.ms / max_ms - 1);
    return c.ms * (1 + 3 * std::max(0.0, c.judged.excess));   // what is not allowed stands behind by how far it is not
}

SiteClock::SiteClock(const Graph& original, const std::map<std::string, double>& ms) {
    for (const Node& node : original.nodes)
        if (const auto it = ms.find(node.name); it != ms.end())
            by_site_[node.name] = {it->second, std::max(1.0, static_cast<double>(macs(node))), static_cast<double>(element_count(node.shape))};
}

double SiteClock::ms(const Graph& network) const {
    double sum = 0;
    for (const Node& node : network.nodes)
        if (const auto it = by_site_.find(node.name); it != by_site_.end()) {
            const Tick& t = it->second;
            sum += t.ms * (work_part * static_cast<double>(macs(node)) / t.macs + (1 - work_part) * static_cast<double>(element_count(node.shape)) / t.outputs);
        }
    return sum;
}

std::vector<std::pair<std::string, NetworkShape>> naive_scalings(const ShapeSpace& space) {
    std::vector<std::pair<std::string, NetworkShape>> out;
    std::set<NetworkShape> known{NetworkShape{}};
    const auto add = [&](const char* origin, double width, double depth) {
        if (NetworkShape shape = space.scaled(width, depth); known.insert(shape).second) out.emplace_back(origin, std::move(shape));
    };
    constexpr double depths[] = {0.75, 0.5, 0.25};
    for (int w = 7; w >= 2; --w) add("width", w / 8.0, 1);
    for (double d : depths) add("depth", 1, d);
    for (int w = 7; w >= 3; --w)
        for (double d : depths) add("both", w / 8.0, d);
    return out;
}

std::vector<std::size_t> finalists(const std::vector<NetworkCandidate>& all, std::size_t most, double max_ms) {
    std::map<std::string, std::vector<std::size_t>> kinds;
    for (std::size_t i = 0; i < all.size(); ++i) kinds[all[i].naive() ? all[i].origin : std::string("own")].push_back(i);
    const auto before = [&](std::size_t a, std::size_t b) {
        const NetworkCandidate &x = all[a], &y = all[b];
        if (!std::isfinite(max_ms) && x.judged.allowed != y.judged.allowed) return x.judged.allowed;
        return fitness(x, max_ms) < fitness(y, max_ms);
    };
    std::vector<std::size_t> out;
    for (auto& [kind, members] : kinds) {
        std::stable_sort(members.begin(), members.end(), before);
        if (kind == "own" && !std::isfinite(max_ms)) std::erase_if(members, [&](std::size_t i) { return !all[i].judged.allowed; });
        members.resize(std::min<std::size_t>(members.size(), kind == "own" ? most : 1));
        out.insert(out.end(), members.begin(), members.end());
    }
    std::stable_sort(out.begin(), out.end(), before);
    return out;
}

}  // namespace loopegg
