#include "optimize/judge_networks.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace loopegg {
namespace {

double number(const nlohmann::json& j, const char* key, double otherwise) {
    const auto it = j.find(key);
    return it != j.end() && it->is_number() ? it->get<double>() : otherwise;
}

}  // namespace

ExpectedLoss loss_of(const Verdict& v) {
    if (!v.evidence.is_object()) return {};
    if (const auto loss = v.evidence.find("loss"); loss != v.evidence.end() && loss->is_object()) {
        const double points = number(*loss, "points", 0);
        return {points, number(*loss, "low", points), number(*loss, "high", points)};
    }
    const double kept = number(v.evidence, "kept", 1);
    return {loss_at_kept(kept), loss_at_kept(number(v.evidence, "high", kept)), loss_at_kept(number(v.evidence, "low", kept))};
}

double excess_of(double kept, double needed) {
    const double most = loss_at_kept(needed);
    return (loss_at_kept(kept) - most) / std::max(0.1, most);
}

namespace {

NetworkVerdict read(Verdict verdict) {
    const ExpectedLoss loss = loss_of(verdict);
    const bool allowed = verdict.allowed;
    const double kept = number(verdict.evidence, "kept", 1), margin = number(verdict.evidence, "margin", allowed ? 0.01 : -0.1);
    return {std::move(verdict), loss, allowed, kept - margin, excess_of(kept, kept - margin)};
}

}  // namespace

std::vector<NetworkVerdict> NetworkJudge::judge(std::span<const Graph> networks) {
    asked_ += static_cast<std::int64_t>(networks.size());
    std::vector<NetworkVerdict> out;
    for (Verdict& v : oracle_.judge(original_, networks)) out.push_back(read(std::move(v)));
    return out;
}

std::vector<Verdict> BesideOriginal::judge(const Graph&, std::span<const Graph> variants) {
    std::vector<Verdict> verdicts = oracle_.judge(original_, variants);
    for (Verdict& v : verdicts) {
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
