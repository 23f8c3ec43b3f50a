// 'loopegg choose': the finalist of a run that is fastest and, by the accuracies that its user trained it to, loses no more than it may.
#include <fmt/format.h>

#include "base/atomic_directory.hpp"
#include "base/quote.hpp"
#include "cli/commands.hpp"
#include "optimize/answer/finalists.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace cmd_choose {

using nlohmann::json;

json to_json(const FinalistChoice& choice, const fs::path& out) {
    json rows = json::array();
    for (const FinalistRow& row : choice.rows) {
        json j{{"name", row.name},
               {"latency_ms", row.ms},
               {"speedup", row.speedup},
               {"expected_loss", row.expected},
               {"loss", {{"points", row.loss.points}, {"low", row.loss.low}, {"high", row.loss.high}, {"measured", row.trained.has_value()}}}};
        if (row.trained) j["accuracies"] = row.trained->accuracies, j["accuracy"] = row.trained->mean(), j["lost"] = *row.lost;
        rows.push_back(std::move(j));
    }
    json answer{{"max_loss", choice.max_loss}, {"finalists", rows}, {"chosen", choice.chosen ? json(choice.rows[*choice.chosen].name) : json("original")}};
    if (choice.chosen) answer["folder"] = (out / "finalists" / choice.rows[*choice.chosen].name).string();
    return answer;
}

void print(const FinalistChoice& choice, const fs::path& out) {
    fmt::print("  {:<14} {:>10} {:>8} {:>14} {:>10} {:>6}  {}\n", "network", "ms", "faster", "expected loss", "accuracy", "runs", "points lost");
    for (std::size_t i = 0; i < choice.rows.size(); ++i) {
        const FinalistRow& row = choice.rows[i];
        fmt::print("{} {:<14} {:>10.3f} {:>7.2f}x {:>14.2f} {:>10} {:>6}  {:.2f} ({:.2f} to {:.2f}), {}\n", choice.chosen == i ? '*' : ' ', row.name, row.ms,
                   row.speedup, row.expected, row.trained ? fmt::format("{:.2f}%", row.trained->mean()) : "",
                   row.trained ? std::to_string(row.trained->accuracies.size()) : "", row.loss.points, row.loss.low, row.loss.high,
                   row.trained ? "measured" : "predicted");
    }
    if (!choice.chosen) {
        fmt::print("\nNo trained network loses at most {:.2f} points and is faster: the original stays.\n", choice.max_loss);
        return;
    }
    const std::string& name = choice.rows[*choice.chosen].name;
    fmt::print("\n{} is the fastest that loses at most {:.2f} points. To compile it:\n", name, choice.max_loss);
    const fs::path trained = out / "finalists" / name / "trained.json";  // what `train` wrote there
    std::error_code ignored;
    const fs::path model = fs::exists(trained, ignored) ? trained : out / "finalists" / name / "model.json";
    fmt::print("  loopegg optimize {} --rules exact --out {}\n", shell_word(model.string()), shell_word(out.string() + "-" + name));
}

Action setup(CLI::App& app) {
    struct Asked {
        std::string out, accuracies, trainings;
        std::optional<double> max_loss;
    };
    auto asked = std::make_shared<Asked>();
    app.add_option("OUT", asked->out, "the out folder of a run")->required();
    app.add_option("--accuracies", asked->accuracies, R"(accuracies in percent: {"original": 95.7, "front-1": [95.1, 95.3]} (default: those of --train))");
    app.add_option("--max-loss", asked->max_loss, "points of accuracy that the network may lose (default: the limit of the run)")
        ->check(CLI::Range(0.0, 100.0));
    app.add_option("--trainings", asked->trainings, "append the accuracies and the plans to this file, for 'loopegg optimize --trainings'");
    return [asked](Session& session) {
        const fs::path out = asked->out;
        require_whole(out, "loopegg optimize MODEL --out " + shell_word(asked->out), "report.html");
        const std::map<std::string, Trained> accuracies = asked->accuracies.empty() ? accuracies_of_run(out) : read_accuracies(asked->accuracies);
        const FinalistChoice choice = choose_by_accuracy(out, accuracies, asked->max_loss);
        if (!asked->trainings.empty()) append_trainings(asked->trainings, out, accuracies);
        if (session.json)
            session.answer(to_json(choice, out));
        else
            print(choice, out);
        return 0;
    };
}

}  // namespace cmd_choose

const Command choose_command{"choose", "pick a finalist of a run by trained accuracies", "loopegg choose out --accuracies accuracies.json --max-loss 0.5",
                             cmd_choose::setup};

}  // namespace loopegg
