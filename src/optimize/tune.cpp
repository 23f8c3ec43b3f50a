#include "optimize/tune.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "extract/cost_model.hpp"
#include "extract/features.hpp"

namespace loopegg {
namespace {

struct Trial {
    Term nest;
    std::vector<float> features;
    double median_ms;                 // negative: failed
};

// One nest on its way to a schedule.
struct Search {
    Term nest;
    std::vector<Term> waiting;        // not measured yet, most promising first by the sketch's own order
    std::unordered_set<Term> seen;
    std::vector<Trial> trials;
    Measured best;
    Term best_nest;
    int failed = 0;
    std::vector<double> after_round;

    void offer(std::vector<Term> more) {
        for (Term& t : more)
            if (seen.insert(t).second) waiting.push_back(std::move(t));
    }
};

// A measurement errs by some percent, so what came close behind the best may be better where it will run.
std::vector<Term> next_best(const Search& s) {
    constexpr double close = 1.15;
    const Trial* second = nullptr;
    for (const Trial& t : s.trials)
        if (t.median_ms > 0 && t.nest != s.best_nest && t.median_ms < close * s.best.latency->median_ms && (!second || t.median_ms < second->median_ms)) second = &t;
    return second ? std::vector{second->nest} : std::vector<Term>{};
}

class Tuner {
public:
    Tuner(Measurer& measurer, const TuneOptions& options, Progress& progress) : measurer_(measurer), options_(options), progress_(progress) {}

    void run(std::vector<Search>& searches) {
        std::int64_t done = 0;
        // Every nest has its first round; where there are very many, it is a short one, so that the best still get another.
        constexpr int first_trials = 1000, least = 3, before_learning = 100;
        const int per_round = std::min(options_.per_round, options_.trials);
        const int first = std::clamp(first_trials / std::max(1, static_cast<int>(searches.size())), std::min(least, per_round), per_round);
        std::size_t taught = 0;
        const int rounds = (options_.trials + options_.per_round - 1) / options_.per_round;
        for (int round = 0; round < rounds; ++round) {
            const int trials = round > 0 ? std::min(options_.per_round, options_.trials - round * options_.per_round) : first;
            const std::size_t nests = static_cast<std::size_t>(std::max(1, options_.together / trials));
            // Nests in order, so that a long run has tuned the first ones well when time is up; the model is shared by all.
            for (std::size_t at = 0; at < searches.size(); at += nests) {
                if (round > 0 && spent_ > options_.seconds) return;
                const std::span<Search> some(searches.begin() + static_cast<std::ptrdiff_t>(at), std::min(nests, searches.size() - at));
                for (Search& s : some)
                    if (round > 0) widen(s, round);
                taught += step(some, trials);
                if (round == 0 && taught >= before_learning) learn(searches), taught = 0;   // what the first shapes taught is of use for the next
                for (Search& s : some)
                    if (s.best.latency) s.after_round.push_back(s.best.latency->median_ms);
                progress_.advance(done += trials * static_cast<std::int64_t>(some.size()), fmt::format("{} nests, round {} of {}", searches.size(), round + 1, rounds));
            }
            learn(searches);
        }
    }

private:
    void widen(Search& s, int round) {
        if (options_.neighbours && s.best.latency) s.offer(options_.neighbours(s.best_nest, options_.seed + static_cast<std::uint64_t>(round)));
    }

    std::vector<Term> pick(Search& s, int most) const {
        std::vector<std::size_t> order(s.waiting.size());
        std::iota(order.begin(), order.end(), 0);
        if (model_.ready()) {
            std::vector<std::vector<float>> rows;
            for (const Term& t : s.waiting) rows.push_back(features_of(t));
            const std::vector<double> speed = model_.predict(rows);
            // The first of all is measured whatever the model says: it is the default, and nothing slower must be chosen.
            const auto free = order.begin() + (s.trials.empty() && !order.empty() ? 1 : 0);
            std::stable_sort(free, order.end(), [&](std::size_t a, std::size_t b) { return speed[a] > speed[b]; });
        }
        order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
        std::vector<Term> picked;
        for (std::size_t i : order) picked.push_back(s.waiting[i]);
        std::sort(order.rbegin(), order.rend());
        for (std::size_t i : order) s.waiting.erase(s.waiting.begin() + static_cast<std::ptrdiff_t>(i));
        return picked;
    }

    // So many of each nest. How many were measured.
    std::size_t step(std::span<Search> some, int most) {
        std::vector<Candidate> candidates;
        std::vector<Search*> of;   // beside the candidates
        for (Search& s : some)
            for (Term& t : pick(s, most)) candidates.push_back({std::move(t), options_.target}), of.push_back(&s);
        if (candidates.empty()) return 0;
        const std::vector<Measured> answers = measurer_.measure(candidates);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            Search& s = *of[i];
            const bool ok = answers[i].latency.has_value();
            s.trials.push_back({candidates[i].nest, features_of(candidates[i].nest), ok ? answers[i].latency->median_ms : -1});
            s.failed += !ok;
            spent_ += answers[i].seconds;
            if (ok && (!s.best.latency || answers[i].latency->median_ms < s.best.latency->median_ms)) s.best = answers[i], s.best_nest = candidates[i].nest;
            if (!ok && !s.best.latency) s.best.why = answers[i].why;
        }
        return answers.size();
    }

    void learn(const std::vector<Search>& searches) {
        for (const Search& s : searches)
            for (std::size_t i = learnt_[&s]; i < s.trials.size(); ++i) {
                const Trial& t = s.trials[i];
                model_.add(t.features, t.median_ms < 0 || !s.best.latency ? 0 : s.best.latency->median_ms / t.median_ms);
            }
        for (const Search& s : searches) learnt_[&s] = s.trials.size();
        model_.fit();
    }

    Measurer& measurer_;
    const TuneOptions& options_;
    Progress& progress_;
    CostModel model_;
    double spent_ = 0;      // seconds of measuring; what the store remembers counts as when it was measured, so a second run ends where the first did
    std::unordered_map<const Search*, std::size_t> learnt_;
};

}  // namespace

std::vector<TunedNest> tune(std::span<const Term> nests, Measurer& measurer, const TuneOptions& options, Progress& progress) {
    std::vector<Search> searches;
    std::unordered_map<Term, std::size_t> index;
    for (const Term& nest : nests)
        if (index.emplace(nest, searches.size()).second) {
            Search s{nest, {}, {}, {}, {}, {}, 0, {}};
            s.offer(options.starts(nest));
            searches.push_back(std::move(s));
        }
    Tuner(measurer, options, progress).run(searches);
    std::vector<TunedNest> out;
    for (const Term& nest : nests) {
        const Search& s = searches[index.at(nest)];
        out.push_back({s.best.latency ? s.best_nest : nest, s.best, static_cast<int>(s.trials.size()), s.failed, next_best(s), s.after_round});
    }
    return out;
}

}  // namespace loopegg
