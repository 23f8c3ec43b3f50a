// Which channels of a network count: by Fisher Potential where its trained weights and data are there, otherwise by magnitude.
//
// Fisher Potential on trained weights is the second-order estimate of what the loss grows by when a channel is switched off. It chooses better than chance
// and no worse than magnitude at equal sizes (experiments/choices/README.md). Where it cannot be had, `why` says so.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "graph/channel_worth.hpp"
#include "graph/graph.hpp"

namespace loopegg {

enum class Criterion { fisher, magnitude, first };
std::string_view to_string(Criterion criterion);

struct Importance {
    Criterion criterion = Criterion::first;
    std::string why;      // one sentence: what chose, and from what
    SiteScores channels;  // empty: the first channels stay
    nlohmann::json evidence = nlohmann::json::object();

    ChannelWorth worth() const { return criterion == Criterion::first ? ChannelWorth{} : summed_over_writers(channels); }
};

struct ImportanceOptions {
    std::string data{};  // as load_batches reads it; empty or "synthetic": no images
    std::uint64_t seed = 0;
    int threads = 0;
};

// `trained` is null where the network has no weights of its own.
Importance importance_of(const Graph& graph, const Weights* trained, const ImportanceOptions& options);

// What result.json and others keep: the criterion, why, the evidence, and the shares of worth that `variant` keeps of `graph`.
nlohmann::json importance_json(const Importance& importance, const Graph& graph, const Graph& variant);

}  // namespace loopegg
