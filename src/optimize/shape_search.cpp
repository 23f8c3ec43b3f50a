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

// How fast likeness falls with the distance of two shapes: a branch more in a stage of three makes networks half alike.
constexpr double likeness_fades = 0.5;

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }
bool one_in(Random& random, std::size_t n) { return random() % n == 0; }

double fitness_of(double ms, double points, double excess, double max_ms) {
    if (std::isfinite(max_ms)) return points + 20 * std::max(0.0, ms / max_ms - 1);
    return ms * std::exp(3 * std::max(0.0, excess));  // a network that is not allowed ranks lower, by how far it is from being allowed
}

}  // namespace

class ShapeSearch::Breeder {
public:
    Breeder(const ShapeSpace& space, NetworkJudge& judge, const SiteClock& clock, const ShapeSearchOptions& options, Progress& progress)
        : space_(space), judge_(judge), clock_(clock), options_(options), progress_(progress), random_(options.seed) {}

    void go_on(std::int64_t asks) {
        const std::int64_t until = std::min(options_.budget, static_cast<std::int64_t>(all_.size()) + asks);
        if (all_.empty()) ask(naive_scalings(space_), until);
        while (static_cast<std::int64_t>(all_.size()) < until && !all_.empty()) {
            const std::size_t before = all_.size();
            ask(children(), until);
            if (all_.size() == before) break;  // no new network was found
        }
    }

    void set_the_clock() {
        for (NetworkCandidate& c : all_) {
            c.ms = clock_.ms(c.graph);  // also for networks that were timed, because parents are compared by one clock
            c.crowding = crowding(c.shape);
        }
    }

    void allow_ms(double max_ms) { options_.max_ms = max_ms; }

    std::vector<NetworkCandidate>& judged() { return all_; }

private:
    static constexpr std::size_t parents = 16, brood = 32, generations = 24, each_time = 12, tries = 400;

    void ask(std::vector<std::pair<std::string, NetworkShape>> shapes, std::int64_t until) {
        std::vector<Graph> graphs;
        std::vector<NetworkCandidate> made;
        for (auto& [origin, shape] : shapes) {
            if (static_cast<std::int64_t>(all_.size() + made.size()) >= until) break;
            std::optional<Graph> graph = space_.network(shape);
            if (!graph || !known_.insert(shape).second) continue;
            made.push_back({origin, shape, *graph, {}, clock_.ms(*graph), false, crowding(shape)});
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
        return best ? fmt::format("whole networks judged; the fastest that is allowed takes about {:.2f} ms ({})", best->ms, best->origin)
                    : std::string("whole networks judged; none is allowed yet");
    }

    double crowding(const NetworkShape& shape) const {
        double most = 0;
        if (options_.spread > 0)
            for (const NetworkCandidate& c : all_)
                if (c.timed && !c.naive()) most = std::max(most, std::exp(-space_.distance(shape, c.shape) / likeness_fades));
        return options_.spread * most;
    }

    // A network that breeding looks at.
    struct Parent {
        NetworkShape shape;
        double ms, fitness;
    };

    // Breeds generations of changes to the best networks, judged by the clock and by sizes. The best new networks go to the guard. Where sizes tell nothing,
    // there is one generation, without networks that are much slower or much faster than the best one: these are too far away to learn from.
    std::vector<std::pair<std::string, NetworkShape>> children() {
        std::vector<Parent> pool;
        for (const NetworkCandidate& c : all_) pool.push_back({c.shape, c.ms, fitness(c, options_.max_ms)});
        const double needed = all_.front().judged.needed;
        std::set<NetworkShape> seen = known_;
        std::vector<Parent> fresh;
        cut(pool, parents);
        const double best = pool.front().ms;
        for (std::size_t generation = 0; generation < generations; ++generation) {
            std::vector<Parent> born;
            std::vector<Graph> graphs;
            for (std::size_t t = 0; t < tries && born.size() < brood; ++t) {
                const Parent& parent = pool[std::min(below(random_, pool.size()), below(random_, pool.size()))];
                NetworkShape shape = one_in(random_, 4) ? crossed(parent.shape, pool[below(random_, pool.size())].shape) : parent.shape;
                for (std::size_t changes = 1 + below(random_, 3); changes > 0; --changes) change(shape);
                shape = space_.reduced(std::move(shape));  // two shapes of one network would take two questions to the guard
                if (!seen.insert(shape).second) continue;
                std::optional<Graph> graph = space_.network(shape);
                if (!graph) continue;
                born.push_back({std::move(shape), clock_.ms(*graph), 0});
                graphs.push_back(std::move(*graph));
            }
            if (born.empty()) break;
            const std::vector<double> kept = judge_.kept_by_size(graphs);
            if (kept.empty()) {
                std::erase_if(born, [&](const Parent& p) { return p.ms > 1.3 * best || p.ms < 0.4 * best; });
                fresh = std::move(born);
                break;
            }
            for (std::size_t i = 0; i < born.size(); ++i)
                born[i].fitness = fitness_of(born[i].ms, loss_at_kept(kept[i]), excess_of(kept[i], needed), options_.max_ms) * (1 + crowding(born[i].shape));
            fresh.insert(fresh.end(), born.begin(), born.end());
            pool.insert(pool.end(), born.begin(), born.end());
            cut(pool, parents);
        }
        cut(fresh, each_time);
        std::vector<std::pair<std::string, NetworkShape>> out;
        for (Parent& p : fresh) out.emplace_back("rules", std::move(p.shape));
        return out;
    }

    static void cut(std::vector<Parent>& pool, std::size_t most) {
        std::stable_sort(pool.begin(), pool.end(), [](const Parent& a, const Parent& b) { return a.fitness < b.fitness; });
        pool.resize(std::min(pool.size(), most));
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
        if (deep && one_in(random_, 3))
            change_depth(shape);
        else if (groups && one_in(random_, 6))
            change_groups(shape);
        else if (wide)
            change_width(shape);
    }

    void change_depth(NetworkShape& shape) {
        const std::string& site = space_.branches()[below(random_, space_.branches().size())].branch.site;
        if (!shape.dropped.erase(site)) shape.dropped.insert(site);
    }

    void change_groups(NetworkShape& shape) {
        const std::string& site = space_.groupable()[below(random_, space_.groupable().size())];
        const std::int64_t groups = std::int64_t{1} << below(random_, 4);
        if (groups == 1)
            shape.groups.erase(site);
        else
            shape.groups[site] = groups;
    }

    // Changes one stream, or all hidden widths of a stage that were equal, by an eighth up or down: sites that stay alike are tuned once.
    void change_width(NetworkShape& shape) {
        const ShapeSpace::Width& picked = space_.widths()[below(random_, space_.widths().size())];
        const int by = one_in(random_, 2) ? 1 : -1;
        for (const ShapeSpace::Width& w : space_.widths())
            if (w.name == picked.name || (!picked.joined && !w.joined && w.stage == picked.stage && w.choices == picked.choices)) shift(shape, w, by);
    }

    static void shift(NetworkShape& shape, const ShapeSpace::Width& w, int by) {
        const auto at = std::lower_bound(w.choices.begin(), w.choices.end(), w.kept_by(shape)) - w.choices.begin();
        const auto next = std::clamp<std::ptrdiff_t>(at + by, 0, static_cast<std::ptrdiff_t>(w.choices.size()) - 1);
        const std::int64_t kept = w.choices[static_cast<std::size_t>(next)];
        if (kept == w.choices.back())
            shape.widths.erase(w.name);
        else
            shape.widths[w.name] = kept;
    }

    const ShapeSpace& space_;
    NetworkJudge& judge_;
    const SiteClock& clock_;
    ShapeSearchOptions options_;
    Progress& progress_;
    Random random_;
    std::vector<NetworkCandidate> all_;
    std::set<NetworkShape> known_{NetworkShape{}};
};

ShapeSearch::ShapeSearch(const ShapeSpace& space, NetworkJudge& judge, const SiteClock& clock, const ShapeSearchOptions& options, Progress& progress)
    : breeder_(std::make_unique<Breeder>(space, judge, clock, options, progress)) {}
ShapeSearch::~ShapeSearch() = default;
void ShapeSearch::go_on(std::int64_t asks) { breeder_->go_on(asks); }
void ShapeSearch::set_the_clock() { breeder_->set_the_clock(); }
void ShapeSearch::allow_ms(double max_ms) { breeder_->allow_ms(max_ms); }
std::vector<NetworkCandidate>& ShapeSearch::judged() { return breeder_->judged(); }

double fitness(const NetworkCandidate& c, double max_ms) { return fitness_of(c.ms, c.judged.loss.points, c.judged.excess, max_ms) * (1 + c.crowding); }

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
    for (std::size_t i = 0; i < all.size(); ++i)
        if (!all[i].timed) kinds[all[i].naive() ? all[i].origin : std::string("own")].push_back(i);
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
