#include "backends/measure/round_measurer.hpp"

#include <algorithm>
#include <cmath>

#include "backends/measure/network_measure.hpp"
#include "backends/measure/roofline.hpp"
#include "base/error.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

constexpr std::size_t max_extra_networks = 4;  // networks of one round that no answer depends on: each is compiled here, too, to know what it computes

// Names a nest without its schedule.
std::string without_schedule(const Term& nest) {
    const NestParts parts = nest_parts(nest);
    return parts.restore + to_string(Term("nest", {parts.statement, schedule_of(statement_of(parts.statement), domain_of(nest))}));
}

}  // namespace

void RoundMeasurer::Ratio::add(double ratio) {
    if (ratio > 0 && std::isfinite(ratio)) logarithms += std::log(ratio), ++count;
}
double RoundMeasurer::Ratio::mean() const { return count == 0 ? 1 : std::exp(logarithms / count); }

RoundMeasurer::RoundMeasurer(Target target, const StoreAddress& store, std::map<Hash128, std::string> failed)
    : target_(std::move(target)), store_(store), failed_(std::move(failed)) {}

std::optional<Measured> RoundMeasurer::known(const Hash128& key) {
    if (const auto it = asked_.find(key); it != asked_.end()) return it->second;
    std::optional<Measured> found = store_.find(key);
    if (found && found->latency && !found->latency->measured) found.reset();
    if (const auto it = failed_.find(key); !found && it != failed_.end()) found = Measured{{}, it->second};
    if (found) asked_[key] = *found;
    return found;
}

void RoundMeasurer::learn(const Term& nest, double ms) {
    const double ratio = ms / estimate_latency(nest, target_).median_ms;
    of_nest_[without_schedule(nest)].add(ratio), of_all_.add(ratio);
}

Measured RoundMeasurer::estimated(const Term& nest) const {
    Latency l = estimate_latency(nest, target_);
    const auto same = of_nest_.find(without_schedule(nest));
    l.median_ms *= (same != of_nest_.end() ? same->second : of_all_).mean();
    return {l, ""};
}

std::vector<Measured> RoundMeasurer::measure(std::span<const Candidate> candidates) {
    std::vector<Measured> answers(candidates.size());
    std::vector<std::size_t> unknown;
    for (std::size_t i = 0; i < candidates.size(); ++i) try {
            const Term nest = complete(candidates[i].nest);
            const Hash128 key = latency_key(target_, nest);
            const auto found = known(key);
            if (!found) {
                unknown.push_back(i);
                continue;
            }
            answers[i] = *found;
            if (!seen_.emplace(key, true).second) continue;
            ++(found->latency ? counts_.measured : counts_.failed);
            if (found->latency) learn(nest, found->latency->median_ms);
        } catch (const UserError& e) {
            answers[i] = Measured{{}, e.what(), 0, true};
        }
    for (std::size_t i : unknown) try {  // after the measurer has learned from all known times
            const Term nest = complete(candidates[i].nest);
            answers[i] = estimated(nest);
            if (!seen_.emplace(latency_key(target_, nest), true).second) continue;
            ++counts_.estimated;
            wanted_.push_back({nest, ranks_[without_schedule(nest)]++});
        } catch (const UserError& e) {
            answers[i] = Measured{{}, e.what(), 0, true};
        }
    return answers;
}

double RoundMeasurer::seen_ms(const Term& nest) {
    const auto found = known(latency_key(target_, nest));
    return found && found->latency ? found->latency->median_ms : estimated(nest).latency->median_ms;
}

Measured RoundMeasurer::network(const Graph& graph, const Weights& weights, const Schedules& schedules, Use use) {
    const Term network = network_term(graph, schedules, target_);
    const Hash128 key = latency_key(target_, network);
    double sum = 0;
    for (const Term& nest : network.children()) sum += seen_ms(complete(nest));
    const auto found = known(key);
    const bool first = seen_.emplace(key, true).second;
    if (found) {
        if (first && found->latency) of_networks_.add(found->latency->median_ms / sum);
        if (found->latency || use == Use::last) return *found;
    } else {
        const auto candidate = std::count_if(networks_.begin(), networks_.end(), [](const WantedNetwork& n) { return n.use == Use::candidate; });
        const auto same = std::find_if(networks_.begin(), networks_.end(), [&](const WantedNetwork& n) { return n.key == key; });
        if (same != networks_.end())
            same->use = use == Use::last ? use : same->use;
        else if (use == Use::last || static_cast<std::size_t>(candidate) < max_extra_networks)
            networks_.push_back({graph, weights, schedules, use, key});
    }
    return {Latency{sum * of_networks_.mean(), 0, 0, target_.name, false, false}, ""};
}

RoundMeasurer::Pending RoundMeasurer::wanted(std::size_t most) const {
    std::vector<const Want*> order;
    for (const Want& w : wanted_) order.push_back(&w);
    std::stable_sort(order.begin(), order.end(), [](const Want* a, const Want* b) { return a->rank < b->rank; });
    order.resize(std::min(order.size(), most));
    Pending all;
    for (const Want* w : order) all.nests.push_back(w->nest);
    all.networks = networks_;
    std::stable_sort(all.networks.begin(), all.networks.end(), [](const WantedNetwork& a, const WantedNetwork& b) { return a.use > b.use; });
    return all;
}

}  // namespace loopegg
