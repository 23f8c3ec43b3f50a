#include "optimize/answer/training_json.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

json accuracies_json(const Trained& trained) { return {{"accuracies", trained.accuracies}, {"accuracy", trained.mean()}}; }

// Of the returned network: its mean accuracy, and where nine of ten training runs of it are expected. The interval is around what the guard believes after all
// training runs. It is below the mean where the network was the luckiest of many.
json returned_json(const FoundNetwork& network, const Trained& original) {
    json j = accuracies_json(network.trained->runs);
    const ExpectedLoss &loss = network.judged.loss, &predicted = network.trained->predicted;
    j.update({{"name", network.name},
              {"low", original.mean() - loss.high},
              {"high", original.mean() - loss.low},
              {"lost", network.trained->lost},
              {"predicted", {{"points", predicted.points}, {"low", predicted.low}, {"high", predicted.high}}}});
    return j;
}

}  // namespace

json training_json(const Answer& answer, const NetworkTraining& training) {
    const TrainingLedger& ledger = training.ledger();
    const Trained original = ledger.find(original_name)->trained();
    json failures = json::array();
    for (const LedgerNetwork& n : ledger.networks())
        for (const TrainingRun& r : n.runs)
            if (!r.outcome.accuracy) failures.push_back({{"name", n.name}, {"seed", r.seed}, {"why", r.outcome.why}});
    json j{{"command", training.request().command},
           {"budget", training.request().budget},
           {"runs", ledger.ended()},
           {"failures", failures},
           {"original", accuracies_json(original)},
           {"returned", nullptr}};
    if (!answer.confirmed.keep_original && answer.chosen->trained) j["returned"] = returned_json(*answer.chosen, original);
    return j;
}

}  // namespace loopegg
