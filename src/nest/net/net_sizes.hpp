// How many channels a network term reads and writes. This is the fact of a class of networks: terms of different sizes are never equal.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

struct Statement;

// The number of channels that are written where `in` channels come in: the largest of fixed + copies * in.
struct ChannelCount {
    std::int64_t fixed = 0, copies = 0;
    friend auto operator<=>(const ChannelCount&, const ChannelCount&) = default;
};

struct NetSizes {
    std::optional<std::int64_t> in{};  // channels that come in; none where the term does not determine it
    std::vector<ChannelCount> out{};   // none of them dominates another; empty where the number cannot be determined
    bool mixes = false;                // some site computes channels from others
    bool computes = false;             // it has a site
    bool kept = false;                 // it has a site that stays as it is
    bool trimmed = false;              // some channels that it would write are left out
    bool narrowable = false;           // its own last sites may write fewer channels, and nothing else has to know
    bool adds_input = false;           // what comes in is added to channels of its own sites, so it can be narrowed only together with these
    std::string broken{};              // why the term is no network; empty where it is one

    bool fresh() const;        // every channel that is written is made by its own sites: nothing of what comes in continues
    bool channelwise() const;  // each channel that is written comes from one that comes in
    std::optional<std::int64_t> written() const { return in ? written(*in) : fresh() ? written(0) : std::nullopt; }
    std::optional<std::int64_t> written(std::int64_t in) const;
    // How many fewer channels are written where `missing` fewer come in.
    std::optional<std::int64_t> absent(std::int64_t missing) const;
    friend bool operator==(const NetSizes&, const NetSizes&) = default;
};

// The sizes of a term from those of its parts, in order. `number` is the W or M of an operator that has one, or the P of a spread.
NetSizes sizes_of_layer(const Statement& statement, bool kept);  // of a whole site
NetSizes sizes_of_net(std::string_view op, std::string_view join, std::int64_t number, std::span<const NetSizes> parts);

// Whether the parts of a row or of a join fit together as they are: what one writes is as wide as what the other reads or is added to. In a term that does not
// fit, some channels are read as zeros, and no graph is made from it.
bool parts_fit(std::string_view op, std::string_view join, const NetSizes& whole, std::span<const NetSizes> parts);

// The sizes of a whole term. Throws UserError for a term that is no network.
NetSizes sizes_of(const Term& net);

}  // namespace loopegg
