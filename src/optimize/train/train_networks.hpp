// Search, train, calibrate: has those networks of a search trained that are most informative, and calibrates the guard on their accuracy, until a budget of
// training runs is spent.
#pragma once
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "graph/weights.hpp"
#include "nest/plan/plan.hpp"
#include "optimize/run/request.hpp"
#include "optimize/train/training_ledger.hpp"
#include "optimize/train/what_to_train.hpp"

namespace loopegg {

// A network that may be trained.
struct TrainingCandidate {
    std::string name{};  // empty: it was not tuned yet
    MeasureInput size;
    double ms = 0;  // measured; of a network that was not tuned, predicted
};

// What is written for the trainer, and into the ledger.
struct TrainableNetwork {
    const Graph& graph;
    const Weights* weights;  // null: the trainer draws new ones
    const Plan& plan;
    ExpectedLoss predicted;
    nlohmann::json extraction;
};

// The search, as the training of its networks sees it.
class CandidateSource {
public:
    virtual ~CandidateSource() = default;
    virtual void learn(const Trainings& trainings) = 0;                        // what it predicts follows these from now on
    virtual std::vector<TrainingCandidate> candidates() = 0;                   // tuned ones, and others that an extraction finds
    virtual std::optional<TrainingCandidate> tune(std::size_t candidate) = 0;  // which then has a name and a measured time; none: the guard refuses it
    virtual TrainableNetwork trainable(const std::string& name) = 0;
    virtual TrainingGoal goal() const = 0;
};

class NetworkTraining {
public:
    // `original`: the network as read; `weights`: null unless it came with trained ones. Throws UserError for a folder with other training runs.
    NetworkTraining(const TrainRequest& request, const Graph& original, const Weights* weights, std::filesystem::path rules, Progress& progress);

    // Trains the original, unless the ledger has its accuracy. Losses are relative to it, so UserError is thrown where that fails.
    void train_original();
    // Trains candidates until the budget is spent or no training promises to improve the answer. At the end `source` has learned from all of them.
    void train_candidates(CandidateSource& source);

    Trainings trainings() const;  // of the original and of all candidates so far
    const TrainingLedger& ledger() const { return ledger_; }
    const TrainRequest& request() const { return request_; }

private:
    struct Chosen {
        std::string name;
        double speedup;
    };
    int left() const { return request_.budget - static_cast<int>(ledger_.ended()); }
    std::vector<Chosen> choose(CandidateSource& source, const CalibratedLoss& calibration, bool& tuned) const;
    void train(const std::vector<Chosen>& chosen, CandidateSource& source);
    void report(const Chosen& chosen, const TrainingOutcome& outcome);
    double seconds_allowed() const;

    TrainRequest request_;
    const Graph& original_;
    const Weights* weights_;
    std::filesystem::path rules_;
    Progress& progress_;
    TrainingLedger ledger_;
    std::string best_words_{};
    double least_lost_ = 0;
};

}  // namespace loopegg
