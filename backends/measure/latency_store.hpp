// Every latency that was ever measured, kept in a store under a key of target, nest, schedule, TVM version and the way it was timed.
//
// Several processes may use one store at once. A process claims a key before it measures the key. Another process that finds the key claimed by a
// living process waits for the answer instead of measuring again. A claim is a lease (base/owner.hpp) that ends with its process, wherever the
// process runs. The store keeps times, and failures that are a candidate's own. It keeps no failure of a full disk or a killed worker.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "backends/network/network.hpp"
#include "backends/target/target.hpp"
#include "base/hash.hpp"
#include "base/term.hpp"
#include "extract/measurer.hpp"
#include "store/address.hpp"

namespace loopegg {

class LatencyStore {
public:
    explicit LatencyStore(const StoreAddress& address);
    ~LatencyStore();
    LatencyStore(const LatencyStore&) = delete;
    LatencyStore& operator=(const LatencyStore&) = delete;

    std::optional<Measured> find(const Hash128& key);  // ignores a row with impossible figures

    // Returns true if this process now has to measure the key. Returns false if the key is known, or a living process measures it.
    bool claim(const Hash128& key, const std::string& target, const std::string& nest);
    // Takes the key over, whoever has it. A process that has waited long enough calls this.
    void seize(const Hash128& key);
    std::string holder(const Hash128& key);  // who has claimed the key, in words; "" when nobody has
    // Keeps an answer, unless the key has a time: the first time stays, so that all processes decide by the same figures. A failure that is not the
    // candidate's own is not kept, and its claim is given up.
    void put(const Hash128& key, const std::string& target, const std::string& nest, const Measured& answer, const std::string& timing = "warm");
    // The same, and gives the answer that counts. Whoever measures without a claim asks so, because another process may have been faster.
    Measured put_or_find(const Hash128& key, const std::string& target, const std::string& nest, const Measured& answer, const std::string& timing = "warm");
    void release(const Hash128& key);  // gives up a claim without an answer

    struct Counts {
        long known = 0, failed = 0, claimed = 0;
    };
    Counts counts();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// `timing` says in what state of the caches a time was taken (cold_weights.hpp). It is "warm" on boards and GPUs and for networks, which are run repeatedly.
Hash128 latency_key(const Target& target, const Term& nest, const std::string& timing = "warm");

// The fastest measured schedules of a network's nests, among the schedules that the target's rules give.
struct KnownSchedules {
    Schedules fastest;             // by site; a site of which nothing was measured has no entry
    std::vector<Term> unmeasured;  // of all sites, each once
};
// Looks at `of_each` schedules of each nest, the cheapest by the estimate first.
KnownSchedules known_schedules(const Graph& graph, const Target& target, std::size_t of_each, const StoreAddress& store);

}  // namespace loopegg
