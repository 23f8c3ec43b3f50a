#include "optimize/search/judge_networks.hpp"

#include <algorithm>

namespace loopegg {
namespace {

std::vector<NetworkVerdict> read(std::vector<Verdict> verdicts) {
    std::vector<NetworkVerdict> out;
    for (Verdict& v : verdicts) {
        const ExpectedLoss loss = loss_of(v);
        const bool allowed = v.allowed;
        out.push_back({std::move(v), loss, allowed});
    }
    return out;
}

}  // namespace

ExpectedLoss loss_of(const Verdict& v) {
    if (!v.evidence.is_object() || !v.evidence.contains("loss")) return {};
    const nlohmann::json& loss = v.evidence.at("loss");
    const double points = loss.at("points");
    return {points, loss.value("low", points), loss.value("high", points), v.evidence.value("unlike", "")};
}

std::vector<NetworkVerdict> NetworkJudge::judge(std::span<const Graph> networks, std::span<const MeasureCondition> conditions) {
    asked_ += static_cast<std::int64_t>(networks.size());
    return read(oracle_.judge(original_, networks, conditions));
}

std::vector<NetworkVerdict> NetworkJudge::judge_by_size(std::span<const Graph> networks) {
    return read(oracle_.judge_by_size(original_, networks, conditions_));
}

std::vector<NetworkVerdict> NetworkJudge::judge_step(std::span<const Graph> networks, std::span<const MeasureCondition> conditions) {
    const bool sizes_answer = std::all_of(conditions.begin(), conditions.end(), [](const MeasureCondition& c) { return c.kind().of_sizes; });
    return sizes_answer ? read(oracle_.judge_by_size(original_, networks, conditions)) : judge(networks, conditions);
}

}  // namespace loopegg
