#include "optimize/choose.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "extract/mip.hpp"

namespace loopegg {
namespace {

using Sites = std::vector<std::vector<SiteOption>>;

struct Objective {
    double latency = 0, capacity = 0, parameters = 0;   // the weight of each in what is minimised
};

// One 0/1 column per option, one equality per site, one row per limit, and one per option that depends on another site's.
class Program {
public:
    explicit Program(const Sites& sites) : sites_(sites) {
        int column = 0;
        for (const auto& options : sites) first_.push_back(column), column += static_cast<int>(options.size());
    }

    std::optional<NetworkChoice> minimise(const Objective& weight, const ChoiceLimits& limits, double gap = 0) const {
        Mip mip;
        for (const auto& options : sites_) {
            MipTerms exactly_one;
            for (const SiteOption& o : options) {
                double cost = weight.latency * o.latency_ms + weight.capacity * o.capacity_cost + weight.parameters * static_cast<double>(o.parameters);
                exactly_one.emplace_back(mip.add_column({cost}), 1.0);
            }
            mip.add_row({1, 1, std::move(exactly_one)});
        }
        add_company(mip);
        for (const AtMost& few : limits.few) add_few(mip, few);
        add_limit(mip, limits.capacity, [](const SiteOption& o) { return o.capacity_cost; });
        add_limit(mip, limits.latency_ms, [](const SiteOption& o) { return o.latency_ms; });
        if (limits.parameters != std::numeric_limits<std::int64_t>::max())
            add_limit(mip, static_cast<double>(limits.parameters), [](const SiteOption& o) { return static_cast<double>(o.parameters); });
        MipAnswer answer = mip.solve(60, {}, gap);
        if (answer.values.empty()) return std::nullopt;
        return add_up(sites_, read(answer.values));
    }

private:
    // What stands only together with others is not more than they are.
    void add_company(Mip& mip) const {
        for (std::size_t s = 0; s < sites_.size(); ++s)
            for (std::size_t i = 0; i < sites_[s].size(); ++i) {
                const auto& company = sites_[s][i].only_with;
                if (!company) continue;
                MipTerms row{{column(s, i), 1.0}};
                for (std::size_t o : company->options) row.emplace_back(column(company->site, o), -1.0);
                mip.add_row({-Mip::unbounded(), 0, std::move(row)});
            }
    }

    void add_few(Mip& mip, const AtMost& few) const {
        MipTerms row;
        for (const auto& [site, option] : few.options) row.emplace_back(column(site, option), 1.0);
        mip.add_row({-Mip::unbounded(), static_cast<double>(few.count), std::move(row)});
    }

    template <class Value> void add_limit(Mip& mip, double upper, Value value) const {
        if (upper == std::numeric_limits<double>::infinity()) return;
        MipTerms row;
        int column = 0;
        for (const auto& options : sites_)
            for (const SiteOption& o : options) row.emplace_back(column++, value(o));
        mip.add_row({-Mip::unbounded(), upper, std::move(row)});
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

    int column(std::size_t site, std::size_t option) const { return first_[site] + static_cast<int>(option); }

    const Sites& sites_;
    std::vector<int> first_;   // by site: the column of its first option
};

std::string nearest(const Program& program, const ChoiceLimits& limits) {
    std::vector<std::string> said;
    ChoiceLimits free = limits;
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
        if (auto c = program.minimise({0, 1, 0}, free))
            said.push_back(fmt::format("a capacity budget of {:.4f} instead of {:.4f}", c->capacity_cost, limits.capacity));
    std::string text = "no choice meets all limits";
    for (std::size_t i = 0; i < said.size(); ++i) text += (i == 0 ? "; with the others as given, possible would be " : ", or ") + said[i];
    return text;
}

}  // namespace

NetworkChoice add_up(const Sites& sites, std::vector<std::size_t> picked) {
    NetworkChoice c;
    for (std::size_t s = 0; s < sites.size(); ++s) {
        const SiteOption& o = sites[s][picked[s]];
        c.latency_ms += o.latency_ms, c.capacity_cost += o.capacity_cost, c.parameters += o.parameters;
    }
    c.picked = std::move(picked);
    return c;
}

ChooseResult choose(const Sites& sites, const ChoiceLimits& limits, double gap) {
    for (const auto& options : sites) require(!options.empty(), "a site without an option");
    if (sites.empty()) return {NetworkChoice{}, ""};
    Program program(sites);
    if (auto c = program.minimise({1, 0, 0}, limits, gap)) return {c, ""};
    return {std::nullopt, nearest(program, limits)};
}

std::optional<NetworkChoice> choose_near(const Sites& sites, const NetworkChoice& from, const Prices& prices, std::size_t changes, ChoiceLimits limits,
                                         double gap) {
    Sites priced = sites;
    AtMost changed{{}, changes}, useless{{}, 0};
    for (std::size_t s = 0; s < sites.size(); ++s)
        for (std::size_t o = 0; o < sites[s].size(); ++o) {
            priced[s][o].capacity_cost = prices[s][o];
            if (o == from.picked[s]) continue;
            const bool gains = prices[s][o] < 0 || sites[s][o].latency_ms < sites[s][from.picked[s]].latency_ms;
            (gains ? changed : useless).options.emplace_back(s, o);
        }
    limits.few.push_back(std::move(changed));
    limits.few.push_back(std::move(useless));
    auto near = Program(priced).minimise({1, 0, 0}, limits, gap);
    if (!near) return std::nullopt;
    return add_up(sites, std::move(near->picked));
}

std::vector<NetworkChoice> pareto_front(const Sites& sites, const ChoiceLimits& limits, int points, double gap) {
    std::vector<NetworkChoice> front;
    auto fastest = choose(sites, limits, gap);
    if (!fastest.choice) return front;
    double most = fastest.choice->capacity_cost;
    for (int i = 0; i < points; ++i) {
        ChoiceLimits l = limits;
        l.capacity = std::min(limits.capacity, most * i / std::max(1, points - 1));
        auto r = choose(sites, l, gap);
        if (!r.choice) continue;
        bool better = front.empty() || r.choice->latency_ms < front.back().latency_ms - 1e-9;
        if (better) front.push_back(std::move(*r.choice));
    }
    return front;
}

}  // namespace loopegg
