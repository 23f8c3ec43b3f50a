#include "optimize/search/judge_networks.hpp"

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
        return {points, number(*loss, "low", points), number(*loss, "high", points), loss->value("unlike", "")};
    }
    const double kept = number(v.evidence, "kept", 1);
    return {loss_at_kept(kept), loss_at_kept(number(v.evidence, "high", kept)), loss_at_kept(number(v.evidence, "low", kept)), {}};
}

namespace {

NetworkVerdict read(Verdict verdict) {
    const ExpectedLoss loss = loss_of(verdict);
    const bool allowed = verdict.allowed;
    return {std::move(verdict), loss, allowed};
}

}  // namespace

std::vector<NetworkVerdict> NetworkJudge::judge(std::span<const Graph> networks) {
    asked_ += static_cast<std::int64_t>(networks.size());
    std::vector<NetworkVerdict> out;
    for (Verdict& v : oracle_.judge(original_, networks)) out.push_back(read(std::move(v)));
    return out;
}

std::vector<NetworkVerdict> NetworkJudge::judge_by_size(std::span<const Graph> networks) {
    const std::vector<double> kept = oracle_.kept_by_size(original_, networks);
    if (kept.empty()) return judge(networks);
    std::vector<NetworkVerdict> out;
    for (double k : kept) {
        const double points = loss_at_kept(k);
        const bool allowed = k >= needed_;
        out.push_back(read({allowed,
                            fmt::format("by its sizes it is expected to lose {:.2f} points, and {:.2f} are allowed", points, loss_at_kept(needed_)),
                            {{"by", "sizes"}, {"kept", k}, {"capacity", needed_}, {"loss", {{"points", points}}}}}));
    }
    return out;
}

}  // namespace loopegg
