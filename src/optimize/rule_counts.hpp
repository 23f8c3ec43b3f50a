// What rules did in earlier runs, and what paid off, counted by class of architecture: shipped counts, and the counts in this machine's store.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

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

struct ClassCounts {
    std::int64_t runs = 0;                            // with every rule switched on; several runs of one network count once
    std::map<std::string, RuleCount> rules;           // by count_key; by the name alone where it is unknown which text was counted
    std::map<std::string, std::int64_t> sequences{};  // for each sequence (paid_sequences.hpp): the runs whose returned network has it at some site
    void add(const ClassCounts& other);
    const RuleCount* find(const Rule& rule) const;  // null: the rule was not counted, or only with another text
    friend bool operator==(const ClassCounts&, const ClassCounts&) = default;
};

using CountTable = std::map<std::string, ClassCounts>;  // by class

// {"residual": {"runs": 2, "rules": {"group-axes": {"fired": 88, "asked": 40, "paid": 12, "hash": "ffd0..."}}, "sequences": {"group-axes ?g=4": 2}}}
CountTable counts_from_json(const nlohmann::json& j);
nlohmann::json to_json(const ClassCounts& counts);
nlohmann::json to_json(const CountTable& table);

// rules/classes.json has "counts", which bench/classes --count makes. For some classes it has settings too: "passes" (an order of passes),
// "capacity" (a threshold of the default guard) and "trials" (how many schedules of a nest are worth their time).
CountTable shipped_counts();
std::string shipped_passes(const std::string& kind);  // "AS-6"; empty: the order of the phase
std::optional<double> shipped_capacity(const std::string& kind);
int shipped_trials(const std::string& kind);  // 0: as many as the request asks for

// The counts of this machine, in the store of latencies. Several processes may add at once.
CountTable stored_counts(const StoreAddress& store);
// Stores what one run of a network counted, in place of what an earlier run of that network counted. So a network that runs twice counts once.
void store_counts(const StoreAddress& store, const std::string& kind, const std::string& network, const ClassCounts& run);

// The shipped and the stored counts together.
CountTable known_counts(const StoreAddress& store);

}  // namespace loopegg
