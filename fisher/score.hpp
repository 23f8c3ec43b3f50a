// Scores a network and its variants by any measures and conditions: the answer of 'loopegg score'.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fisher/oracle.hpp"

namespace loopegg {

struct NamedVariant {
    std::string plan;  // as the user named it
    Graph graph;
};

struct ScoreOptions {
    OracleOptions oracle;                             // data, batch, seeds, store; its conditions are always asked
    std::vector<std::string> measures;                // empty: fisher, naswot, params, macs
    std::vector<std::vector<MeasureCondition>> also;  // asked besides these, each by itself
    bool raw = false;                                 // also give the scores of each seed, layer by layer, for each network
    bool noise = false;                               // do the null test as well
    bool recheck = false;                             // ask again about what the store has, and compare
};

// The JSON that 'loopegg score --json' prints: original, variants and seconds, and noise and recheck where they are asked for.
nlohmann::json score_variants(const Graph& original, const std::vector<NamedVariant>& variants, const ScoreOptions& options,
                              const std::function<void(std::int64_t done, std::int64_t all, const std::string& what)>& progress);

// A scorer that remembers what it was asked, so that several guards and measures share passes.
std::shared_ptr<Scorer> remembering(std::shared_ptr<Scorer> scorer);

}  // namespace loopegg
