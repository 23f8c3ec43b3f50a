#include "optimize/run/trainings.hpp"

#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "graph/hidden_widths.hpp"
#include "rewrite/plan_rules.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

struct PlanTrainings {
    JsonView plan;
    Trained trained;
};

double accuracy_of(const JsonView& line) {
    const JsonView accuracy = line.at("accuracy");
    if (const double percent = accuracy.number(); percent >= 0 && percent <= 100) return percent;
    accuracy.fail(fmt::format("expected an accuracy in percent, 0 to 100, but found {}", accuracy.value().dump()));
}

MeasureInput size_of(const Graph& graph) { return sizes_of(without_unread_outputs(graph)); }

UserError missing_training(const std::string& file, const std::string& what) {
    return UserError(Diagnostic{fmt::format("'{}' has no training of {}", file, what), {}, R"(each line is {"plan": {"steps": [...]}, "accuracy": 91.4})"});
}

}  // namespace

double Trained::mean() const { return std::accumulate(accuracies.begin(), accuracies.end(), 0.0) / static_cast<double>(accuracies.size()); }

Trainings read_trainings(const SourcePtr& source, const Graph& original, const fs::path& rules) {
    std::map<std::string, PlanTrainings> by_plan;
    Trained whole;
    Trainings out;
    std::optional<JsonView> recipe;
    for (const JsonView& line : read_json_lines(source)) {
        const auto base = line.find("base");
        if (base && base->text() != original.name) continue;
        if (const auto its = line.find("recipe")) {
            if (recipe && recipe->text() != its->text())
                its->fail(fmt::format("this training is by the recipe '{}', and an earlier one is by '{}': accuracies of two recipes cannot be compared",
                                      its->text(), recipe->text()),
                          "keep the lines of one recipe");
            recipe = its;
        }
        const double accuracy = accuracy_of(line);
        const JsonView plan = line.at("plan");
        out.lines += line.value().dump() + "\n";
        if (plan.at("steps").items().empty())
            whole.accuracies.push_back(accuracy);
        else
            by_plan.try_emplace(plan.value().dump(), PlanTrainings{plan, {}}).first->second.trained.accuracies.push_back(accuracy);
    }
    if (whole.accuracies.empty())
        throw missing_training(source->name, fmt::format("'{}' itself (a plan without steps), which a loss is relative to", original.name));

    const PlanRules named = plan_rules(rules);
    std::vector<TrainedNetwork> trained;
    for (const auto& [text, t] : by_plan)
        trained.push_back(
            {size_of(apply_plan(original, read_plan(t.plan), named)), whole.mean() - t.trained.mean(), static_cast<int>(t.trained.accuracies.size())});
    out.calibration = std::make_shared<CalibratedLoss>(size_of(original), std::move(trained), static_cast<int>(whole.accuracies.size()));
    return out;
}

Trainings read_trainings(const fs::path& file, const Graph& original, const fs::path& rules) {
    Trainings all = read_trainings(read_source(file), original, rules);
    if (all.calibration->networks() == 0) throw missing_training(file.string(), fmt::format("a network that was made from '{}'", original.name));
    return all;
}

}  // namespace loopegg
