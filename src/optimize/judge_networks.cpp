#include "optimize/judge_networks.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace loopegg {
namespace {

constexpr double points_of_half = 0.8;

double number(const nlohmann::json& j, const char* key, double otherwise) {
    const auto it = j.find(key);
    return it != j.end() && it->is_number() ? it->get<double>() : otherwise;
}

}  // namespace

PredictedLoss predicted_loss(const Verdict& v) {
    if (!v.evidence.is_object()) return {};
    if (const auto loss = v.evidence.find("loss"); loss != v.evidence.end() && loss->is_object()) {
        const double points = number(*loss, "points", 0);
        return {points, number(*loss, "low", points), number(*loss, "high", points)};
    }
    const auto points = [](double kept) { return -points_of_half * std::log2(std::max(kept, 1e-9)); };
    const double kept = number(v.evidence, "kept", 1);
    return {points(kept), points(number(v.evidence, "high", kept)), points(number(v.evidence, "low", kept))};
}

NetworkVerdict NetworkJudge::read(Verdict verdict) const {
    NetworkVerdict n{std::move(verdict), {}, true, 0};
    n.loss = predicted_loss(n.verdict);
    if (max_loss_) {
        n.allowed = n.loss.points <= *max_loss_;
        n.excess = (n.loss.points - *max_loss_) / std::max(*max_loss_, 0.05);
    } else {
        n.allowed = n.verdict.allowed;
        const double kept = number(n.verdict.evidence, "kept", 1), margin = number(n.verdict.evidence, "margin", n.allowed ? 0.01 : -0.1);
        n.excess = -margin / std::max(0.05, 1 - (kept - margin));
    }
    n.verdict.allowed = n.allowed;
    return n;
}

std::vector<NetworkVerdict> NetworkJudge::judge(std::span<const Graph> networks) {
    asked_ += static_cast<std::int64_t>(networks.size());
    std::vector<NetworkVerdict> out;
    for (Verdict& v : oracle_.judge(original_, networks)) out.push_back(read(std::move(v)));
    return out;
}

std::vector<Verdict> BesideOriginal::judge(const Graph&, std::span<const Graph> variants) {
    std::vector<Verdict> verdicts = oracle_.judge(original_, variants);
    for (Verdict& v : verdicts) {
        if (max_loss_) v.allowed = predicted_loss(v).points <= *max_loss_;
        if (!v.evidence.is_object()) continue;
        for (const char* key : {"kept", "kept_by_size"})
            if (const double kept = number(v.evidence, key, -1); kept >= 0) v.evidence[key] = std::min(1.0, kept / kept_);
        if (const double margin = number(v.evidence, "margin", -1e9); margin > -1e9) v.evidence["margin"] = margin / kept_;
    }
    return verdicts;
}

std::vector<double> BesideOriginal::kept_by_size(const Graph&, std::span<const Graph> variants) {
    std::vector<double> kept = oracle_.kept_by_size(original_, variants);
    for (double& k : kept) k = std::min(1.0, k / kept_);
    return kept;
}

}  // namespace loopegg
