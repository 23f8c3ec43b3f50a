// What a run has trained, in files: a run that is killed loses the training runs in flight, and nothing else.
//
// FOLDER/NAME holds what a resumed run must know of a network (network.json), and a folder for each of its training
// runs. FOLDER/NAME/seed-1 is what the trainer
// gets, and holds the outcome once the run has ended (outcome.json). A network that is there keeps its name.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fisher/expected_loss.hpp"
#include "optimize/run/trainings.hpp"
#include "optimize/train/trainer.hpp"

namespace loopegg {

struct TrainingRun {
    int seed = 1;
    TrainingOutcome outcome;
};

struct LedgerNetwork {
    std::string name;             // "original", "front-3"
    nlohmann::json plan;          // as plan.json has it
    ExpectedLoss predicted{};     // before its first training
    nlohmann::json extraction{};  // extraction_json of network/front.hpp
    std::vector<TrainingRun> runs{};

    Trained trained() const;  // the runs that did not fail
    int failed() const;
};

// What all runs of one ledger have in common. Accuracies of two models, or by two recipes, cannot be compared.
struct LedgerKey {
    std::string base, model, command;  // base: the name of the model; model: its hash
};

class TrainingLedger {
public:
    // Reads what is there. Throws UserError for a ledger with another key, unless none of its runs has ended.
    TrainingLedger(std::filesystem::path folder, LedgerKey key);

    const std::vector<LedgerNetwork>& networks() const { return networks_; }
    const LedgerNetwork* find(const std::string& name) const;
    std::size_t ended() const;                                                 // training runs, failed ones included
    std::filesystem::path folder_of(const std::string& name, int seed) const;  // for the trainer
    void add(LedgerNetwork network);                                           // that has no runs yet
    void end(const std::string& name, int seed, const TrainingOutcome& outcome);
    std::string lines() const;  // one for each accuracy, as read_trainings() takes them

private:
    LedgerNetwork& at(const std::string& name);
    std::filesystem::path folder_;
    LedgerKey key_;
    std::vector<LedgerNetwork> networks_;
};

inline const std::string original_name = "original";

}  // namespace loopegg
