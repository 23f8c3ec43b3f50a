#include "optimize/choose.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <highs_c_api.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

using Sites = std::vector<std::vector<SiteOption>>;

struct Objective {
    double latency = 0, capacity = 0, parameters = 0;   // the weight of each in what is minimised
};

NetworkChoice add_up(const Sites& sites, std::vector<std::size_t> picked) {
    NetworkChoice c;
    for (std::size_t s = 0; s < sites.size(); ++s) {
        const SiteOption& o = sites[s][picked[s]];
        c.latency_ms += o.latency_ms, c.capacity_cost += o.capacity_cost, c.parameters += o.parameters;
    }
    c.picked = std::move(picked);
    return c;
}

// One 0/1 column per option, one equality per site, one row per limit.
class Program {
public:
    explicit Program(const Sites& sites) : sites_(sites) {
        for (const auto& options : sites) count_ += options.size();
    }

    std::optional<NetworkChoice> minimise(const Objective& weight, const Limits& limits) {
        std::unique_ptr<void, void (*)(void*)> highs(Highs_create(), Highs_destroy);
        Highs_setBoolOptionValue(highs.get(), "output_flag", 0);
        Highs_setIntOptionValue(highs.get(), "threads", 1);   // the same answer on every machine
        Highs_setDoubleOptionValue(highs.get(), "mip_rel_gap", 1e-9);
        std::vector<double> cost = column([&](const SiteOption& o) {
            return weight.latency * o.latency_ms + weight.capacity * o.capacity_cost + weight.parameters * static_cast<double>(o.parameters);
        });
        for (double c : cost) {
            Highs_addCol(highs.get(), c, 0, 1, 0, nullptr, nullptr);
        }
        for (std::size_t i = 0; i < count_; ++i) Highs_changeColIntegrality(highs.get(), static_cast<HighsInt>(i), kHighsVarTypeInteger);
        std::size_t first = 0;
        for (const auto& options : sites_) {
            std::vector<HighsInt> index(options.size());
            for (std::size_t k = 0; k < options.size(); ++k) index[k] = static_cast<HighsInt>(first + k);
            std::vector<double> ones(options.size(), 1.0);
            Highs_addRow(highs.get(), 1, 1, static_cast<HighsInt>(index.size()), index.data(), ones.data());
            first += options.size();
        }
        double inf = Highs_getInfinity(highs.get());
        auto limit = [&](double upper, auto value) {
            if (upper >= 1e18) return;
            std::vector<double> row = column(value);
            std::vector<HighsInt> index(count_);
            for (std::size_t i = 0; i < count_; ++i) index[i] = static_cast<HighsInt>(i);
            Highs_addRow(highs.get(), -inf, upper, static_cast<HighsInt>(count_), index.data(), row.data());
        };
        limit(limits.capacity, [](const SiteOption& o) { return o.capacity_cost; });
        limit(limits.latency_ms, [](const SiteOption& o) { return o.latency_ms; });
        limit(static_cast<double>(limits.parameters), [](const SiteOption& o) { return static_cast<double>(o.parameters); });
        require(Highs_run(highs.get()) != kHighsStatusError, "HiGHS could not run the choice");
        if (Highs_getModelStatus(highs.get()) != kHighsModelStatusOptimal) return std::nullopt;
        std::vector<double> x(count_);
        Highs_getSolution(highs.get(), x.data(), nullptr, nullptr, nullptr);
        return add_up(sites_, read(x));
    }

private:
    template <class Value> std::vector<double> column(Value value) const {
        std::vector<double> out;
        out.reserve(count_);
        for (const auto& options : sites_)
            for (const SiteOption& o : options) out.push_back(value(o));
        return out;
    }

    std::vector<std::size_t> read(const std::vector<double>& x) const {
        std::vector<std::size_t> picked;
        auto at = x.begin();
        for (const auto& options : sites_) {
            auto end = at + static_cast<std::ptrdiff_t>(options.size());
            picked.push_back(static_cast<std::size_t>(std::max_element(at, end) - at));
            at = end;
        }
        return picked;
    }

    const Sites& sites_;
    std::size_t count_ = 0;
};

std::string nearest(Program& program, const Limits& limits) {
    std::vector<std::string> said;
    Limits free = limits;
    free.parameters = std::numeric_limits<std::int64_t>::max();
    if (limits.parameters != free.parameters)
        if (auto c = program.minimise({0, 0, 1}, free)) said.push_back(fmt::format("--max-params {}", c->parameters));
    free = limits;
    free.latency_ms = std::numeric_limits<double>::infinity();
    if (limits.latency_ms != free.latency_ms)
        if (auto c = program.minimise({1, 0, 0}, free)) said.push_back(fmt::format("--max-latency {:.3f}", c->latency_ms * 1.001));
    free = limits;
    free.capacity = std::numeric_limits<double>::infinity();
    if (limits.capacity != free.capacity)
        if (auto c = program.minimise({0, 1, 0}, free)) said.push_back(fmt::format("a capacity budget of {:.4f} instead of {:.4f}", c->capacity_cost, limits.capacity));
    std::string text = "no choice meets all limits";
    for (std::size_t i = 0; i < said.size(); ++i) text += (i == 0 ? "; with the others as given, possible would be " : ", or ") + said[i];
    return text;
}

}  // namespace

ChooseResult choose(const Sites& sites, const Limits& limits) {
    for (const auto& options : sites) require(!options.empty(), "a site without an option");
    if (sites.empty()) return {NetworkChoice{}, ""};
    Program program(sites);
    if (auto c = program.minimise({1, 0, 0}, limits)) return {c, ""};
    return {std::nullopt, nearest(program, limits)};
}

std::vector<NetworkChoice> pareto_front(const Sites& sites, const Limits& limits, int points) {
    std::vector<NetworkChoice> front;
    auto fastest = choose(sites, limits);
    if (!fastest.choice) return front;
    double most = fastest.choice->capacity_cost;
    for (int i = 0; i < points; ++i) {
        Limits l = limits;
        l.capacity = std::min(limits.capacity, most * i / std::max(1, points - 1));
        auto r = choose(sites, l);
        if (!r.choice) continue;
        bool better = front.empty() || r.choice->latency_ms < front.back().latency_ms - 1e-9;
        if (better) front.push_back(std::move(*r.choice));
    }
    return front;
}

}  // namespace loopegg
