#include "optimize/tune/tune.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "extract/cost_model.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

struct Trial {
    Term nest;
    std::vector<float> features;
    double median_ms;    // negative: failed
    bool waits = false;  // estimated, and to be measured later (TuneOptions::wait_for_times)
};

// One nest on its way to a schedule.
struct Search {
    Term nest;
    double uses = 0;             // in the network
    std::size_t instead_of = 0;  // place of the search whose nest this nest would replace; its own place if it replaces none
    bool needed = false;         // has one trial even when time is up
    std::vector<Term> waiting;   // not measured yet, most promising first by the estimate
    std::unordered_set<Term> seen;
    std::vector<Trial> trials;
    Measured best;
    Term best_nest;
    int failed = 0;
    std::vector<double> after_round;

    bool waits() const {
        return std::any_of(trials.begin(), trials.end(), [](const Trial& t) { return t.waits; });
    }
    // An estimate is never better than a measured time.
    void note(const Measured& m, const Term& schedule) {
        if (!m.latency || (best.latency && best.latency->measured && !m.latency->measured)) return;
        const bool first = !best.latency || (m.latency->measured && !best.latency->measured);
        if (first || m.latency->median_ms < best.latency->median_ms) best = m, best_nest = schedule;
    }
    void offer(std::vector<Term> more) {
        for (Term& t : more)
            if (seen.insert(t).second) waiting.push_back(std::move(t));
    }
};

// A measurement errs by some percent, so a schedule that came close behind the best may be better inside the network.
std::vector<Term> next_best(const Search& s) {
    constexpr double close = 1.15;
    const Trial* second = nullptr;
    for (const Trial& t : s.trials)
        if (t.median_ms > 0 && !(t.waits && s.best.latency->measured) && t.nest != s.best_nest && t.median_ms < close * s.best.latency->median_ms &&
            (!second || t.median_ms < second->median_ms))
            second = &t;
    return second ? std::vector{second->nest} : std::vector<Term>{};
}

std::optional<Term> best_in_float32(const Search& s) {
    const Trial* best = nullptr;
    for (const Trial& t : s.trials)
        if (t.median_ms > 0 && !(t.waits && s.best.latency->measured) && !rounds_operands(t.nest) && (!best || t.median_ms < best->median_ms)) best = &t;
    return best ? std::optional(best->nest) : std::nullopt;
}

class Tuner {
public:
    Tuner(Measurer& measurer, const TuneOptions& options, Progress& progress) : measurer_(measurer), options_(options), progress_(progress) {}

    void run(std::vector<Search>& searches) {
        run_rounds(searches);
        try_until_one_works(searches);
    }

private:
    void run_rounds(std::vector<Search>& searches) {
        // Every nest has a first round. Where there are very many nests, the first round is short, so that the best nests still get another.
        constexpr int first_trials = 1000, least = 3;
        const int nests = std::max(1, static_cast<int>(searches.size()));
        const int per_round = std::min(options_.per_round, options_.trials);
        const int rounds = (options_.trials + options_.per_round - 1) / options_.per_round;
        std::vector<int> trials(searches.size(), std::clamp(first_trials / nests, std::min(least, per_round), per_round));
        for (int round = 0; round < rounds; ++round) {
            if (round > 0) trials = verdict_of_each_site(searches, std::max(0, options_.trials * nests - tried_) / (rounds - round));
            for (std::size_t i = 0; i < searches.size(); ++i)
                if (searches[i].waits()) trials[i] = 0;
            // Nests come in order, so that the first ones are tuned well when time is up. All nests share the model.
            for (std::size_t at = 0, end = 0; at < searches.size(); at = end) {
                if (round > 0 && spent_ > options_.seconds) return;
                if (spent_ > options_.seconds)  // time is up in the first round
                    for (std::size_t i = at; i < searches.size(); ++i) trials[i] = searches[i].needed ? 1 : 0;
                for (int together = 0; end < searches.size() && (end == at || together + trials[end] <= options_.together); ++end) together += trials[end];
                step(std::span(searches).subspan(at, end - at), std::span(trials).subspan(at, end - at), round);
                progress_.advance(tried_, fmt::format("{} nests, round {} of {}", searches.size(), round + 1, rounds));
            }
            learn(searches);
        }
    }

    // Without a time of each nest that it needs, there is no network: such a nest has further trials, also when its trials or the time are used up.
    void try_until_one_works(std::vector<Search>& searches) {
        constexpr int max_tries = 8;
        for (int tries = 0; tries < max_tries; ++tries) {
            std::vector<int> trials;
            for (const Search& s : searches) trials.push_back(s.needed && !s.best.latency && !s.waiting.empty() ? 1 : 0);
            if (std::count(trials.begin(), trials.end(), 1) == 0) return;
            step(searches, trials, 0);
        }
    }

    // Whether a nest is so much slower than the nest that it would replace that no schedule will make it useful.
    static bool hopeless(const std::vector<Search>& searches, const Search& s) {
        constexpr double catch_up = 1.3;  // more than tuning gains after a first round
        const auto& other = searches[s.instead_of].best.latency;
        return s.best.latency && other && s.best.latency->median_ms > catch_up * other->median_ms;
    }

    // Shares out the trials among all nests by the time that the network spends in each: most can be gained where the network spends most. No nest gets more
    // than three times an even part. A nest without a time yet gets an even part.
    static std::vector<int> verdict_of_each_site(const std::vector<Search>& searches, int all) {
        const double even = static_cast<double>(all) / static_cast<double>(searches.size());
        const auto part = [&](const Search& s, double rate) {
            if (!s.best.latency) return even;
            return hopeless(searches, s) ? 0.0 : std::min(3 * even, rate * s.uses * s.best.latency->median_ms);
        };
        const auto sum = [&](double rate) {
            return std::accumulate(searches.begin(), searches.end(), 0.0, [&](double before, const Search& s) { return before + part(s, rate); });
        };
        double low = 0, high = 1;
        while (sum(high) < all && sum(2 * high) > sum(high)) high *= 2;
        for (int i = 0; i < 40; ++i) (sum((low + high) / 2) < all ? low : high) = (low + high) / 2;
        std::vector<int> trials;
        double owed = 0;  // what rounding left over
        for (const Search& s : searches) {
            owed += part(s, high);
            trials.push_back(static_cast<int>(owed));
            owed -= trials.back();
        }
        return trials;
    }

    void widen(Search& s, int round) {
        if (options_.neighbours && s.best.latency) s.offer(options_.neighbours(s.best_nest, options_.seed + static_cast<std::uint64_t>(round)));
    }

    std::vector<Term> pick(Search& s, int most) const {
        std::vector<std::size_t> order(s.waiting.size());
        std::iota(order.begin(), order.end(), 0);
        if (model_.ready() && !s.trials.empty()) {  // for a new nest, the order of its schedules is better than a model that learned from other nests
            std::vector<std::vector<float>> rows;
            for (const Term& t : s.waiting) rows.push_back(features_of(t));
            const std::vector<double> speed = model_.predict(rows);
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return speed[a] > speed[b]; });
        }
        order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
        std::vector<Term> picked;
        for (std::size_t i : order) picked.push_back(s.waiting[i]);
        std::sort(order.rbegin(), order.rend());
        for (std::size_t i : order) s.waiting.erase(s.waiting.begin() + static_cast<std::ptrdiff_t>(i));
        return picked;
    }

    // Measures `trials` candidates of each nest.
    void step(std::span<Search> some, std::span<const int> trials, int round) {
        std::vector<Candidate> candidates;
        std::vector<Search*> of;  // for each candidate, the search that it belongs to
        for (std::size_t i = 0; i < some.size(); ++i) {
            if (trials[i] == 0) continue;
            if (round > 0) widen(some[i], round);
            for (Term& t : pick(some[i], trials[i])) candidates.push_back({std::move(t), options_.target}), of.push_back(&some[i]);
        }
        if (!candidates.empty()) note(candidates, of, measurer_.measure(candidates));
        for (Search& s : some)
            if (s.best.latency) s.after_round.push_back(s.best.latency->median_ms);
    }

    void note(const std::vector<Candidate>& candidates, const std::vector<Search*>& of, const std::vector<Measured>& answers) {
        for (std::size_t i = 0; i < answers.size(); ++i) {
            Search& s = *of[i];
            const bool ok = answers[i].latency.has_value();
            const bool waits = options_.wait_for_times && ok && !answers[i].latency->measured;
            s.trials.push_back({candidates[i].nest, features_of(candidates[i].nest), ok ? answers[i].latency->median_ms : -1, waits});
            s.failed += !ok;
            spent_ += answers[i].seconds;
            s.note(answers[i], candidates[i].nest);
            if (!ok && !s.best.latency) s.best.why = answers[i].why;
        }
        tried_ += static_cast<int>(answers.size());
    }

    void learn(const std::vector<Search>& searches) {
        for (const Search& s : searches)
            for (std::size_t i = learnt_[&s]; i < s.trials.size(); ++i) {
                const Trial& t = s.trials[i];
                if (t.waits) continue;
                model_.add(t.features, t.median_ms < 0 || !s.best.latency ? 0 : s.best.latency->median_ms / t.median_ms);
            }
        for (const Search& s : searches) learnt_[&s] = s.trials.size();
        model_.fit();
    }

    Measurer& measurer_;
    const TuneOptions& options_;
    Progress& progress_;
    CostModel model_;
    int tried_ = 0;     // candidates that were measured
    double spent_ = 0;  // seconds of measuring; a time from the store counts as much as when it was measured, so a second run ends where the first did
    std::unordered_map<const Search*, std::size_t> learnt_;
};

}  // namespace

std::vector<TunedNest> tune(std::span<const Term> nests, Measurer& measurer, const TuneOptions& options, Progress& progress) {
    std::vector<Search> searches;
    std::unordered_map<Term, std::size_t> index;
    if (options.prepare) {
        const std::unordered_set<Term> distinct(nests.begin(), nests.end());
        options.prepare(std::vector<Term>(distinct.begin(), distinct.end()));
    }
    for (std::size_t i = 0; i < nests.size(); ++i) {
        const auto [at, fresh] = index.emplace(nests[i], searches.size());
        if (fresh) {
            searches.push_back({.nest = nests[i], .instead_of = at->second});
            searches.back().offer(options.starts(nests[i]));
        }
        Search& s = searches[at->second];
        const TuneOptions::Role role = options.role ? options.role(i) : TuneOptions::Role{1, i};
        s.uses = std::max(s.uses, role.uses), s.needed |= role.needed;
        if (fresh && role.instead_of < i) s.instead_of = index.at(nests[role.instead_of]);
    }
    Tuner(measurer, options, progress).run(searches);
    std::vector<TunedNest> out;
    for (const Term& nest : nests) {
        const Search& s = searches[index.at(nest)];
        out.push_back(
            {s.best.latency ? s.best_nest : nest, s.best, static_cast<int>(s.trials.size()), s.failed, next_best(s), best_in_float32(s), s.after_round});
    }
    return out;
}

}  // namespace loopegg
