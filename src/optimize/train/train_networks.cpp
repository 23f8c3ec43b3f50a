#include "optimize/train/train_networks.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "graph/model_json.hpp"
#include "graph/safetensors.hpp"
#include "optimize/train/trainer.hpp"

namespace loopegg {
namespace {

constexpr int tuned_for_each = 4;  // candidates that are tuned, at most, to find one that is as fast as predicted
constexpr int max_fruitless = 3;   // extractions in a row that give nothing to train, although candidates were tuned
// Of one network. A process that expects too little news of other networks would spend the budget on the network that it was wrong about.
constexpr std::size_t max_runs = 2;
constexpr double least_seconds = 3600;  // that a training run may always take, and otherwise so many times as long as that of the original
constexpr double patience = 10;

LedgerKey key_of(const TrainRequest& request, const Graph& original, const Weights* weights) {
    Hasher model;
    model.add(write_model(original));
    if (weights) model.add(write_safetensors(*weights));
    return {original.name, model.finish().hex().substr(0, 16), request.command};
}

}  // namespace

NetworkTraining::NetworkTraining(const TrainRequest& request, const Graph& original, const Weights* weights, std::filesystem::path rules, Progress& progress)
    : request_(request),
      original_(original),
      weights_(weights),
      rules_(std::move(rules)),
      progress_(progress),
      ledger_(request.folder, key_of(request, original, weights)) {}

Trainings NetworkTraining::trainings() const {
    return read_trainings(make_source((request_.folder / "trainings").string(), ledger_.lines()), original_, rules_);
}

double NetworkTraining::seconds_allowed() const {
    if (request_.seconds > 0) return request_.seconds;
    const LedgerNetwork* original = ledger_.find(original_name);
    if (!original || original->runs.empty()) return 0;
    return std::max(least_seconds, patience * original->runs.front().outcome.seconds);
}

void NetworkTraining::train_original() {
    ledger_.add({original_name, {{"steps", nlohmann::json::array()}}, {}, {}, {}});
    if (!ledger_.find(original_name)->runs.empty()) return;
    const TrainingTask task{ledger_.folder_of(original_name, 1), 1};
    write_trainable(task.folder, original_, weights_, {});
    TrainingOutcome outcome;
    const Trainer trainer{request_.command, 1, seconds_allowed()};
    trainer.train(
        {&task, 1}, [&](std::size_t, const TrainingOutcome& o) { outcome = o; }, [&] { progress_.advance(0, "training the original"); });
    if (outcome.accuracy && *outcome.accuracy <= 1)
        outcome = {{}, fmt::format("its accuracy is {}: expected percent, and a trained network reaches more than 1", *outcome.accuracy)};
    if (!outcome.accuracy)
        throw UserError(Diagnostic{
            fmt::format("--train: the original could not be trained: {}", outcome.why),
            {},
            fmt::format("the command was '{}', for {}; what it printed is there, in output.txt and log.txt", request_.command, task.folder.string())});
    ledger_.end(original_name, 1, outcome);
    progress_.note(fmt::format("the original trained to {:.2f}%", *outcome.accuracy));
}

void NetworkTraining::train_candidates(CandidateSource& source) {
    Progress::Inner stage(&progress_, "train", request_.budget);
    for (int fruitless = 0;;) {
        const Trainings known = trainings();
        source.learn(known);
        if (left() <= 0) break;
        bool tuned = false;
        const std::vector<Chosen> chosen = choose(source, *known.calibration, tuned);
        if (!chosen.empty()) {
            train(chosen, source), fruitless = 0;
            continue;
        }
        if (tuned && ++fruitless < max_fruitless) continue;  // times were learned, so the next extraction is another one
        progress_.note(fmt::format("{} of {} training runs are left: no network within the limits promises to improve the answer", left(), request_.budget));
        break;
    }
    stage.finish(best_words_);
}

// One network for each run that may start together. What each is expected to reach is believed at once, so that the next one is unlike it.
std::vector<NetworkTraining::Chosen> NetworkTraining::choose(CandidateSource& source, const CalibratedLoss& calibration, bool& tuned) const {
    std::vector<TrainingCandidate> candidates = source.candidates();
    std::vector<bool> excluded(candidates.size(), false), about_to_be(candidates.size(), false);
    CalibratedLoss believed = calibration;
    std::vector<Chosen> chosen;
    const auto wanted = static_cast<std::size_t>(std::min(request_.jobs, left()));
    for (std::size_t tries = 0; chosen.size() < wanted && tries < (1 + tuned_for_each) * wanted; ++tries) {
        std::vector<TrainingOption> options;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            const LedgerNetwork* known = ledger_.find(candidates[i].name);
            options.push_back({candidates[i].size, candidates[i].ms, about_to_be[i] || (known && !known->trained().accuracies.empty()),
                               excluded[i] || (known && (known->failed() > 0 || known->runs.size() >= max_runs))});
        }
        const TrainingGoal goal = source.goal();
        const std::optional<std::size_t> best = max_promising(believed, options, goal);
        if (!best) break;
        if (candidates[*best].name.empty()) {  // the choice is made again with the time that it took
            tuned = true;
            const std::optional<TrainingCandidate> timed = source.tune(*best);
            if (timed)
                candidates[*best] = *timed;
            else
                excluded[*best] = true;
            continue;
        }
        excluded[*best] = about_to_be[*best] = true;
        chosen.push_back({candidates[*best].name, goal.original_ms / candidates[*best].ms});
        believed = believed.with({candidates[*best].size, believed.belief(candidates[*best].size).points, 1});
    }
    return chosen;
}

void NetworkTraining::train(const std::vector<Chosen>& chosen, CandidateSource& source) {
    std::vector<TrainingTask> tasks;
    for (const Chosen& c : chosen) {
        const TrainableNetwork network = source.trainable(c.name);
        ledger_.add({c.name, nlohmann::json::parse(write_plan(network.plan)), network.predicted, network.extraction, {}});
        const int seed = static_cast<int>(ledger_.find(c.name)->runs.size()) + 1;
        tasks.push_back({ledger_.folder_of(c.name, seed), seed});
        write_trainable(tasks.back().folder, network.graph, network.weights, network.plan);
    }
    const auto ended = [&](std::size_t i, const TrainingOutcome& outcome) {
        ledger_.end(chosen[i].name, tasks[i].seed, outcome);
        report(chosen[i], outcome);
    };
    const auto waiting = [&] {
        progress_.advance(static_cast<std::int64_t>(ledger_.ended()),
                          fmt::format("{} runs at once; {}", tasks.size(), best_words_.empty() ? "none has ended" : best_words_));
    };
    Trainer{request_.command, request_.jobs, seconds_allowed()}.train(tasks, ended, waiting);
}

void NetworkTraining::report(const Chosen& chosen, const TrainingOutcome& outcome) {
    const LedgerNetwork& network = *ledger_.find(chosen.name);
    if (!outcome.accuracy)
        return progress_.note(fmt::format("the training of {} failed: {} (its files are in {})", chosen.name, outcome.why,
                                          ledger_.folder_of(chosen.name, network.runs.back().seed).string()));
    const double lost = ledger_.find(original_name)->trained().mean() - network.trained().mean();
    progress_.note(fmt::format("{} trained to {:.2f}%: {:.2f} points lost, {:.2f} predicted", chosen.name, *outcome.accuracy, lost, network.predicted.points));
    if (!best_words_.empty() && lost >= least_lost_) return;
    least_lost_ = lost, best_words_ = fmt::format("best so far {}: {:.2f} points lost, {:.2f}x", chosen.name, lost, chosen.speedup);
}

}  // namespace loopegg
