// The user's command that trains a network, called on one folder or on several at once.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "graph/graph.hpp"
#include "graph/weights.hpp"
#include "nest/plan/plan.hpp"

namespace loopegg {

struct TrainingTask {
    std::filesystem::path folder;  // with the network (write_trainable)
    int seed = 1;
};

struct TrainingOutcome {
    std::optional<double> accuracy{};  // percent; none: the run failed
    std::string why{};                 // it failed
    double seconds = 0;
};

// The accuracy that the output of a trainer ends with: its last line is a JSON object such as {"accuracy": 91.4}, in percent. Otherwise says what was wrong.
TrainingOutcome read_accuracy(const std::string& output);

// Throws UsageError for a command without {}.
void check_trainer(const std::string& command);

struct Trainer {
    std::string command;  // for the shell; {} represents the folder, and LOOPEGG_SEED in its environment is the seed
    int jobs = 1;
    double seconds = 0;  // a run that takes longer is stopped, and has failed; 0: no limit

    // Runs the command for every task, `jobs` at once. Its standard output goes to output.txt of the folder, and its
    // standard error to log.txt. `ended` is called
    // as each run ends, and `waiting` several times a second.
    void train(std::span<const TrainingTask> tasks, const std::function<void(std::size_t task, const TrainingOutcome&)>& ended,
               const std::function<void()>& waiting) const;
};

// Writes a network as files that people train with their own code: plan.json, model.json, network.py (a PyTorch module), and weights.safetensors unless
// `weights` is null.
void write_trainable(const std::filesystem::path& folder, Graph graph, const Weights* weights, const Plan& plan);

}  // namespace loopegg
