// The networks that a run timed, as files that people train with code of their own, and the choice among them by the accuracies that they reached.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "optimize/run/trainings.hpp"
#include "optimize/search/find_networks.hpp"

namespace loopegg {

// Writes out/finalists/NAME with plan.json, model.json and network.py (a PyTorch module), and the weights where the run read trained ones.
void write_finalists(const std::filesystem::path& out, const FoundNetworks& found, bool trained);

// The accuracies that the run itself had networks trained to (--train). Throws UserError where it trained none.
std::map<std::string, Trained> accuracies_of_run(const std::filesystem::path& out);

// {"original": 95.7, "front-1": [95.1, 95.3], ...}: one accuracy or several, in percent. Throws UserError that says what was expected.
std::map<std::string, Trained> read_accuracies(const std::filesystem::path& file);

struct FinalistRow {
    std::string name;
    double ms = 0, speedup = 1;
    double expected = 0;  // points that the guard expected to be lost
    std::optional<Trained> trained;
    std::optional<double> lost;  // points, next to the original
    ExpectedLoss loss;           // what was measured, where the network was trained, with the interval of the mean; otherwise what is expected
};

struct FinalistChoice {
    std::vector<FinalistRow> rows;      // the original first, then the fastest first
    std::optional<std::size_t> chosen;  // into `rows`; none: every trained network loses more than allowed, and the original stays
    double max_loss = 0;
};

// Picks the fastest of the trained networks that lose no more than `max_loss` points (without it: than the run allowed). Throws UserError for a run
// without finalists, for a name that is no finalist, and where the original's accuracy is missing.
FinalistChoice choose_by_accuracy(const std::filesystem::path& out, const std::map<std::string, Trained>& accuracies, std::optional<double> max_loss);

// Appends a line for each accuracy of a run's finalists to a file that read_trainings reads, unless the file has such a line.
void append_trainings(const std::filesystem::path& file, const std::filesystem::path& out, const std::map<std::string, Trained>& accuracies);

}  // namespace loopegg
