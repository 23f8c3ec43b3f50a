#include "optimize/train/training_ledger.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

json to_json(const LedgerKey& key) { return {{"base", key.base}, {"model", key.model}, {"command", key.command}}; }

void require_same(const fs::path& file, const LedgerKey& key) {
    const JsonView known = read_json(read_source(file));
    const auto differs = [&](const char* what, const std::string& was, const std::string& is) {
        return UserError(Diagnostic{fmt::format("the training runs in '{}' are of {} '{}', and this run is of '{}': their accuracies cannot be compared",
                                                file.parent_path().string(), what, was, is),
                                    {},
                                    "choose another --out, or remove that folder"});
    };
    if (known.at("model").text() != key.model || known.at("base").text() != key.base)
        throw differs("the model", known.at("base").text() + " (" + known.at("model").text() + ")", key.base + " (" + key.model + ")");
    if (known.at("command").text() != key.command) throw differs("the trainer", known.at("command").text(), key.command);
}

json to_json(const LedgerNetwork& n) {
    return {{"name", n.name},
            {"plan", n.plan},
            {"predicted", {{"points", n.predicted.points}, {"low", n.predicted.low}, {"high", n.predicted.high}}},
            {"extraction", n.extraction}};
}

LedgerNetwork network_from(const fs::path& file) {
    const JsonView view = read_json(read_source(file));
    const JsonView predicted = view.at("predicted");
    return {view.at("name").text(),
            view.at("plan").value(),
            {predicted.at("points").number(), predicted.at("low").number(), predicted.at("high").number(), {}},
            view.at("extraction").value(),
            {}};
}

json to_json(const TrainingOutcome& o) {
    if (o.accuracy) return {{"accuracy", *o.accuracy}, {"seconds", o.seconds}};
    return {{"failed", o.why}, {"seconds", o.seconds}};
}

TrainingOutcome outcome_from(const fs::path& file) {
    const JsonView view = read_json(read_source(file));
    TrainingOutcome outcome;
    outcome.seconds = view.at("seconds").number();
    if (const auto accuracy = view.find("accuracy"))
        outcome.accuracy = accuracy->number();
    else
        outcome.why = view.at("failed").text();
    return outcome;
}

std::vector<TrainingRun> runs_in(const fs::path& folder) {
    std::vector<TrainingRun> runs;
    for (int seed = 1; fs::exists(folder / fmt::format("seed-{}", seed)); ++seed)
        if (const fs::path file = folder / fmt::format("seed-{}", seed) / "outcome.json"; fs::exists(file)) runs.push_back({seed, outcome_from(file)});
    return runs;
}

std::vector<fs::path> networks_in(const fs::path& folder) {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder))
        if (fs::exists(entry.path() / "network.json")) all.push_back(entry.path());
    return all;
}

bool any_outcome(const fs::path& folder) {
    const std::vector<fs::path> all = networks_in(folder);
    return std::any_of(all.begin(), all.end(), [](const fs::path& network) { return !runs_in(network).empty(); });
}

void remove_networks(const fs::path& folder) {
    for (const fs::path& network : networks_in(folder)) fs::remove_all(network);
}

}  // namespace

Trained LedgerNetwork::trained() const {
    Trained all;
    for (const TrainingRun& r : runs)
        if (r.outcome.accuracy) all.accuracies.push_back(*r.outcome.accuracy);
    return all;
}

int LedgerNetwork::failed() const {
    return static_cast<int>(std::count_if(runs.begin(), runs.end(), [](const TrainingRun& r) { return !r.outcome.accuracy; }));
}

TrainingLedger::TrainingLedger(fs::path folder, LedgerKey key) : folder_(std::move(folder)), key_(std::move(key)) {
    fs::create_directories(folder_);
    const fs::path search = folder_ / "search.json";
    if (fs::exists(search) && any_outcome(folder_))
        require_same(search, key_);
    else if (!fs::exists(search) || parse_json_file(search) != to_json(key_))
        remove_networks(folder_);  // no run ended: a command that was mistyped, for example
    write_file(search, to_json(key_).dump(1) + "\n");
    for (const fs::path& network : networks_in(folder_)) {
        networks_.push_back(network_from(network / "network.json"));
        networks_.back().runs = runs_in(network);
    }
    std::sort(networks_.begin(), networks_.end(), [](const LedgerNetwork& a, const LedgerNetwork& b) {
        return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name);  // front-2 before front-10
    });
}

const LedgerNetwork* TrainingLedger::find(const std::string& name) const {
    const auto at = std::find_if(networks_.begin(), networks_.end(), [&](const LedgerNetwork& n) { return n.name == name; });
    return at == networks_.end() ? nullptr : &*at;
}

LedgerNetwork& TrainingLedger::at(const std::string& name) {
    const auto at = std::find_if(networks_.begin(), networks_.end(), [&](const LedgerNetwork& n) { return n.name == name; });
    require(at != networks_.end(), "the network is in the ledger");
    return *at;
}

std::size_t TrainingLedger::ended() const {
    std::size_t all = 0;
    for (const LedgerNetwork& n : networks_) all += n.runs.size();
    return all;
}

fs::path TrainingLedger::folder_of(const std::string& name, int seed) const { return folder_ / name / fmt::format("seed-{}", seed); }

void TrainingLedger::add(LedgerNetwork network) {
    if (find(network.name)) return;
    fs::create_directories(folder_ / network.name);
    write_file(folder_ / network.name / "network.json", to_json(network).dump(1) + "\n");
    networks_.push_back(std::move(network));
}

void TrainingLedger::end(const std::string& name, int seed, const TrainingOutcome& outcome) {
    write_file(folder_of(name, seed) / "outcome.json", to_json(outcome).dump(1) + "\n");
    at(name).runs.push_back({seed, outcome});
}

std::string TrainingLedger::lines() const {
    std::string text;
    for (const LedgerNetwork& n : networks_)
        for (const TrainingRun& r : n.runs)
            if (r.outcome.accuracy)
                text +=
                    json{{"base", key_.base}, {"name", n.name}, {"seed", r.seed}, {"plan", n.plan}, {"accuracy", *r.outcome.accuracy}, {"recipe", key_.command}}
                        .dump() +
                    "\n";
    return text;
}

}  // namespace loopegg
