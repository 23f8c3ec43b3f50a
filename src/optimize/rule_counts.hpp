// What rules did in earlier runs, and what paid off, counted by class of architecture and by network: shipped counts, and the counts in this machine's store.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "rules/rule.hpp"
#include "store/address.hpp"

namespace loopegg {

struct RuleCount {
    std::int64_t fired = 0;  // applications that changed the e-graph
    std::int64_t asked = 0;  // configurations that the guard was asked about because of the rule
    std::int64_t paid = 0;   // steps of networks that were returned
    friend bool operator==(const RuleCount&, const RuleCount&) = default;
};

// Counts belong to a rule's text, not to its name: "NAME HASH".
std::string count_key(const Rule& rule);

// What one run of a network with every rule switched on counted.
struct NetworkCounts {
    std::string name;                        // for people; the store does not keep it
    std::map<std::string, RuleCount> rules;  // by count_key
    std::set<std::string> sequences{};       // those that the returned network has at some site (paid_sequences.hpp)
    friend bool operator==(const NetworkCounts&, const NetworkCounts&) = default;
};

// By class, and then by the architecture_hash of the network. So several runs of one network count once, under whatever names it ran.
using CountedNetworks = std::map<std::string, std::map<std::string, NetworkCounts>>;

// What a rule did in all networks that were counted with its text.
struct RuleSum : RuleCount {
    std::int64_t networks = 0;
    friend bool operator==(const RuleSum&, const RuleSum&) = default;
};

// The sum over the counted networks of a class.
struct ClassCounts {
    std::map<std::string, RuleSum> rules;             // by count_key
    std::map<std::string, std::int64_t> sequences{};  // for each sequence: how many networks were returned with it
    void add(const NetworkCounts& network);
    const RuleSum* find(const Rule& rule) const;  // null: the rule was not counted, or only with another text
    friend bool operator==(const ClassCounts&, const ClassCounts&) = default;
};

using CountTable = std::map<std::string, ClassCounts>;  // by class

// {"residual": {"03fe...": {"name": "resnet18", "rules": {"group-axes": {"fired": 88, "asked": 40, "paid": 12, "hash": "ffd0..."}},
//                           "sequences": ["group-axes ?g=4"]}}}
CountedNetworks counts_from_json(const nlohmann::json& j);
nlohmann::json to_json(const NetworkCounts& counts);
nlohmann::json to_json(const CountedNetworks& counted);

// rules/classes.json has "counts", which bench/classes --count makes. For some classes it has settings too: "passes" (an order of passes),
// "capacity" (a threshold of the default guard), "trials" (how many schedules of a nest are worth their time) and "keep" (sequences that are searched for,
// whatever was counted).
CountedNetworks shipped_counts();
std::string shipped_passes(const std::string& kind);  // "together-6"; empty: the order of the phase
std::optional<double> shipped_capacity(const std::string& kind);
int shipped_trials(const std::string& kind);  // 0: as many as the request asks for
std::set<std::string> shipped_keep(const std::string& kind);

// The counts of this machine, in the store of latencies. Several processes may add at once.
CountedNetworks stored_counts(const StoreAddress& store);
// Stores what one run of a network counted, in place of what an earlier run of that network counted.
void store_counts(const StoreAddress& store, const std::string& kind, const Hash128& network, const NetworkCounts& run);

// What the other networks teach: the sums without every row of `network`. So the rules of a network never depend on its own runs.
CountTable counts_without(const Hash128& network, const CountedNetworks& counted);
// The same for the shipped and the stored counts together. A network that is in both counts once, as it is stored.
CountTable known_counts(const StoreAddress& store, const Hash128& network);

}  // namespace loopegg
