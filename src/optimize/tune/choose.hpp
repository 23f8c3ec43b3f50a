// Picks one option per site: the smallest total latency that a capacity budget and the user's limits allow, exactly. The network is an e-graph with a class for
// each site, and the choice is an extraction under side constraints (extract/within.hpp).
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loopegg {

// One way to run one site.
struct SiteOption {
    std::size_t variant = 0;  // the caller's index; 0 is the original by convention
    double latency_ms = 0;
    double capacity_cost = 0;  // how much of the capacity budget the option uses; 0 for the original
    std::int64_t parameters = 0;
    // The option may be picked only together with one of these options of each of these other sites. Without a Company the option may be picked alone.
    struct Company {
        std::size_t site;
        std::vector<std::size_t> options;
    };
    std::vector<Company> only_with{};
    double loss_beyond_size = 0;  // the part of the capacity cost that sizes do not tell (CapacityOracle::kept_by_size)
};

// At most `count` of these options (site, option) may be picked.
struct AtMost {
    std::vector<std::pair<std::size_t, std::size_t>> options;
    std::size_t count = 0;
};

struct ChoiceLimits {
    double capacity = std::numeric_limits<double>::infinity();
    double latency_ms = std::numeric_limits<double>::infinity();
    std::int64_t parameters = std::numeric_limits<std::int64_t>::max();
    std::vector<AtMost> at_most{};  // see mixture.hpp
};

struct NetworkChoice {
    std::vector<std::size_t> picked;  // for each site, an index into its options
    double latency_ms = 0, capacity_cost = 0;
    std::int64_t parameters = 0;
};

// A choice, or a sentence with the nearest limits that can be met when the limits exclude each other.
struct ChooseResult {
    std::optional<NetworkChoice> choice;
    std::string why;
};

NetworkChoice add_up(const std::vector<std::vector<SiteOption>>& sites, std::vector<std::size_t> picked);

// The chosen latency may be above the best one by `gap`, as a share of the best.
ChooseResult choose(const std::vector<std::vector<SiteOption>>& sites, const ChoiceLimits& limits, double gap = 0);

// By site and option: how much more a network loses when that site takes that option; 0 for the option that the site has.
using Prices = std::vector<std::vector<double>>;

// The fastest choice that differs from `from` at no more than `changes` sites.
// Options are priced by what they lose in comparison with `from`, and limits.capacity bounds the sum of these prices.
// Gives nothing where no choice meets the limits.
std::optional<NetworkChoice> choose_near(const std::vector<std::vector<SiteOption>>& sites, const NetworkChoice& from, const Prices& prices,
                                         std::size_t changes, ChoiceLimits limits, double gap = 0);

// The choices that no other beats in both latency and capacity cost, from the original's cost to the fastest; `points` budgets are tried.
std::vector<NetworkChoice> pareto_front(const std::vector<std::vector<SiteOption>>& sites, const ChoiceLimits& limits, int points = 12, double gap = 0);

}  // namespace loopegg
