#include "optimize/train/trainer.hpp"

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/network/int8_calibration.hpp"
#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"
#include "graph/model_json.hpp"
#include "graph/pytorch/network_py.hpp"
#include "graph/safetensors.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr int max_attempts = 3;  // of a run that somebody else ends by a signal, as a cluster does
constexpr double poll_seconds = 0.1;
constexpr std::size_t shown = 100;              // characters of a line that is no answer
constexpr std::uintmax_t max_output = 1 << 30;  // bytes

std::string last_line(const std::string& text) {
    const std::vector<std::string> lines = split(text, '\n');
    for (std::size_t i = lines.size(); i-- > 0;)
        if (lines[i].find_first_not_of(" \t\r") != std::string::npos) return lines[i];
    return "";
}

class RunningTraining {
public:
    RunningTraining(const Trainer& trainer, const TrainingTask& task)
        : folder_(task.folder),
          limit_(trainer.seconds),
          began_(Clock::now()),
          process_(command(trainer, task), task.folder / "output.txt", task.folder / "log.txt") {}

    // None while the run continues, and where it was ended by somebody else (`again` is then set).
    std::optional<TrainingOutcome> ended(bool& again) {
        const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
        const std::optional<CommandEnd> end = process_.ended();
        if (!end && limit_ > 0 && seconds > limit_) {
            process_.stop();
            return TrainingOutcome{{}, fmt::format("it was stopped after {:.0f} s, the limit for one training run", limit_), seconds};
        }
        if (!end) return {};
        again = end->is_cancelled;
        TrainingOutcome outcome = end->words.empty() ? read_accuracy(read_file(folder_ / "output.txt", max_output)) : TrainingOutcome{{}, end->words};
        outcome.seconds = seconds;
        return outcome;
    }

private:
    static CommandLine command(const Trainer& trainer, const TrainingTask& task) {
        return {{"/bin/sh", "-c", with_folder(trainer.command, task.folder)}, {{"LOOPEGG_SEED", std::to_string(task.seed)}}};
    }

    fs::path folder_;
    double limit_;
    Clock::time_point began_;
    ChildProcess process_;
};

}  // namespace

TrainingOutcome read_accuracy(const std::string& output) {
    const std::string line = last_line(output);
    if (line.empty()) return {{}, R"(it printed nothing: expected a last line such as {"accuracy": 91.4})"};
    const nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
    if (!answer.is_object() || !answer.contains("accuracy"))
        return {
            {},
            fmt::format(R"(the last line of its output is '{}': expected a JSON object such as {{"accuracy": 91.4}})", terminal_text(line.substr(0, shown)))};
    const nlohmann::json& accuracy = answer["accuracy"];
    if (!accuracy.is_number() || !(accuracy.get<double>() >= 0 && accuracy.get<double>() <= 100))
        return {{}, fmt::format("its accuracy is {}: expected percent, 0 to 100", terminal_text(accuracy.dump().substr(0, shown)))};
    return {accuracy.get<double>(), ""};
}

void check_trainer(const std::string& command) {
    if (command.find("{}") == command.npos) throw UsageError("--train: expected a command with {} in it, which is replaced with the folder of a network");
}

void Trainer::train(std::span<const TrainingTask> tasks, const std::function<void(std::size_t, const TrainingOutcome&)>& ended,
                    const std::function<void()>& waiting) const {
    std::map<std::size_t, std::unique_ptr<RunningTraining>> running;
    std::vector<int> attempts(tasks.size(), 0);
    std::vector<std::size_t> open;
    for (std::size_t i = tasks.size(); i-- > 0;) open.push_back(i);
    while (!open.empty() || !running.empty()) {
        while (!open.empty() && running.size() < static_cast<std::size_t>(std::max(1, jobs))) {
            const std::size_t i = open.back();
            open.pop_back();
            ++attempts[i];
            running[i] = std::make_unique<RunningTraining>(*this, tasks[i]);
        }
        for (auto it = running.begin(); it != running.end();) {
            bool again = false;
            const std::optional<TrainingOutcome> outcome = it->second->ended(again);
            if (!outcome) {
                ++it;
                continue;
            }
            const std::size_t i = it->first;
            it = running.erase(it);
            if (again && attempts[i] < max_attempts)
                open.push_back(i);
            else
                ended(i, *outcome);
        }
        waiting();
        if (!running.empty()) std::this_thread::sleep_for(std::chrono::duration<double>(poll_seconds));
    }
}

void write_trainable(const fs::path& folder, Graph graph, const Weights* weights, const Plan& plan) {
    fs::create_directories(folder);
    graph.weights_file = weights ? "weights.safetensors" : "";
    if (weights) write_file(folder / graph.weights_file, write_safetensors(without_int8_scales(*weights)));
    write_file(folder / "plan.json", write_plan(plan));
    write_file(folder / "model.json", write_model(graph));
    write_file(folder / "network.py", network_py(graph));
}

}  // namespace loopegg
