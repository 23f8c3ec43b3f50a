// Every latency that was ever measured, kept in SQLite under a key of target, nest, schedule, TVM version and the way it was timed.
//
// Several processes may use one store at once: a key is claimed before it is measured, and whoever finds it claimed by a living
// process waits for the answer instead of measuring it again.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "backends/target/target.hpp"
#include "base/hash.hpp"
#include "base/term.hpp"
#include "extract/measurer.hpp"

namespace loopegg {

class LatencyStore {
public:
    explicit LatencyStore(const std::filesystem::path& file);
    ~LatencyStore();
    LatencyStore(const LatencyStore&) = delete;
    LatencyStore& operator=(const LatencyStore&) = delete;

    std::optional<Measured> find(const Hash128& key);

    // True if this process is now the one to measure the key. False: it is known, or a living process is at it.
    bool claim(const Hash128& key, const std::string& target, const std::string& nest);
    void put(const Hash128& key, const std::string& target, const std::string& nest, const Measured& answer, const std::string& timing = "warm");
    void release(const Hash128& key);   // a claim that came to nothing

    struct Counts {
        long known = 0, failed = 0, claimed = 0;
    };
    Counts counts();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// LOOPEGG_STORE, or loopegg/latency.sqlite in the user's cache folder.
std::filesystem::path default_store_file();

// `timing` says in what state of the caches (cold_weights.hpp). Networks, boards and GPUs are run again and again as they are: "warm".
Hash128 latency_key(const Target& target, const Term& nest, const std::string& timing = "warm");

}  // namespace loopegg
