#include "optimize/tune/layout_times.hpp"

#include <algorithm>

#include "backends/lower/default_schedule.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"
#include "optimize/tune/statement_kind.hpp"
#include "optimize/tune/tune.hpp"
#include "optimize/tune/tuning.hpp"

namespace loopegg {
namespace {

constexpr double share_of_time = 0.3;     // of the time for tuning, for all layouts together
constexpr double share_to_explore = 0.6;  // of that time

std::int64_t instances_of(const Term& nest) { return statement_of(nest_parts(nest).statement).instances(); }

}  // namespace

void LayoutTimes::add(const Term& nest, const Term& now, bool site) {
    const auto [at, fresh] = entries_.try_emplace(nest);
    if (fresh) {
        order_.push_back(nest);
        at->second = {.now = now, .kind = statement_kind(nest_parts(nest).statement), .site = site};
    }
    ++at->second.uses;
}

void LayoutTimes::explore() {
    // What runs now. The nests of sites were timed when they were tuned, so the store has their times.
    std::vector<Term> untuned;
    const auto measure = [&] {
        std::vector<Candidate> candidates;
        for (const Term& nest : untuned) candidates.push_back({scheduled(nest), run_.request.target});
        const std::vector<Measured> times = run_.timing.nests.measure(candidates);
        for (std::size_t i = 0; i < times.size(); ++i)
            if (times[i].latency) entries_.at(untuned[i]).ms = times[i].latency->median_ms;
        untuned.clear();
    };
    for (const Term& nest : order_) {
        Entry& e = entries_.at(nest);
        if (nest != e.now) continue;
        e.scheduled = nest;
        if (e.site) untuned.push_back(nest);
    }
    measure();
    const auto dearness = [&](const Term& nest) {
        const Entry &e = entries_.at(nest), &now = entries_.at(e.now);
        return e.site ? now.ms.value_or(0) : static_cast<double>(instances_of(nest));
    };
    for (const Term& nest : order_) {
        const auto [at, fresh] = example_.try_emplace(entries_.at(nest).kind, nest);
        if (!fresh && dearness(nest) > dearness(at->second)) at->second = nest;
    }
    std::vector<Term> tuned;
    for (const Term& nest : order_)
        if (const Entry& e = entries_.at(nest); example_.at(e.kind) == nest && !e.ms) (e.site ? tuned : untuned).push_back(nest);
    measure();
    tune_all(std::move(tuned), share_of_time * share_to_explore * effort_.seconds);
}

void LayoutTimes::tune_all(std::vector<Term> nests, double seconds) {
    const auto value = [&](const Term& nest) {
        const Entry& e = entries_.at(nest);
        return std::max(e.uses, e.wanted) * time_of(entries_.at(e.now)).value_or(0);
    };
    std::stable_sort(nests.begin(), nests.end(), [&](const Term& a, const Term& b) { return value(a) > value(b); });
    TuneOptions options = tune_options(run_, {seconds, std::max(1, effort_.trials / 2)});
    options.role = [&](std::size_t i) {
        const Entry& e = entries_.at(nests[i]);
        return TuneOptions::Role{std::max(e.uses, e.wanted), i};
    };
    const std::vector<TunedNest> tuned = tune(nests, run_.timing.nests, options, run_.progress);
    for (std::size_t i = 0; i < nests.size(); ++i)
        if (tuned[i].best.latency) {
            Entry& e = entries_.at(nests[i]);
            e.ms = tuned[i].best.latency->median_ms, e.scheduled = tuned[i].nest;
        }
}

std::optional<double> LayoutTimes::time_of(const Entry& entry) const {
    if (entry.ms) return entry.ms;
    const auto example = entries_.find(example_.at(entry.kind));
    if (!example->second.ms) return std::nullopt;
    const Entry& runs = entries_.at(entry.now);
    const Entry& example_runs = entries_.at(example->second.now);
    if (&runs == &entry || !example_runs.ms || !runs.ms) {
        const double share = static_cast<double>(instances_of(entry.now)) / static_cast<double>(instances_of(example->second.now));
        return *example->second.ms * share;
    }
    return *runs.ms * *example->second.ms / *example_runs.ms;
}

std::optional<double> LayoutTimes::of(const std::vector<Term>& nests) const {
    double sum = 0;
    for (const Term& nest : nests) {
        const auto ms = time_of(entries_.at(nest));
        if (!ms) return std::nullopt;
        sum += *ms;
    }
    return sum;
}

void LayoutTimes::want(const Term& nest) { ++entries_.at(nest).wanted; }

void LayoutTimes::tune_wanted() {
    std::vector<Term> nests;
    for (const Term& nest : order_)
        if (const Entry& e = entries_.at(nest); e.wanted > 0 && e.site && !e.ms) nests.push_back(nest);
    tune_all(std::move(nests), share_of_time * (1 - share_to_explore) * effort_.seconds);
}

Term LayoutTimes::scheduled(const Term& nest) const {
    const Entry& e = entries_.at(nest);
    return e.scheduled ? e.scheduled : arrange(nest, run_.target);
}

}  // namespace loopegg
