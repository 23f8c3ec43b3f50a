// A search whose times come from elsewhere, round by round: each round is a bundle in a folder, and its results come back next to it.
//
// A run answers with what is known so far, and writes a round of programs that it wants measured. When the results have come back, the same command continues
// from them. Times are in the store, so nothing is lost when a process is killed, and nothing is measured twice.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "backends/measure/round_measurer.hpp"
#include "base/progress.hpp"

namespace loopegg {

struct RoundLimits {
    int rounds = 6;      // of a whole search; 0: there are no rounds, and all times are estimated
    int programs = 300;  // of one round, whole networks aside
};

class Rounds {
public:
    // Reads the rounds in `folder` so far. `model` identifies the network. Throws UserError for rounds of another network or target.
    Rounds(std::filesystem::path folder, std::string model, Target target, RoundLimits limits);

    // Takes in all results that came back. Throws UserError for results that no runner writes, and then keeps nothing of that round.
    void take_in(const StoreAddress& store);

    int done() const { return done_; }                                        // rounds whose results were taken in
    const std::map<Hash128, std::string>& failed() const { return failed_; }  // programs that came to nothing, and why

    // Writes what `measurer` wants as the next round, unless a round is still out, no round is left or nothing is wanted. The last round of a search has
    // only the networks that the answer depends on, so that the answer does not change. Returns what result.json says of rounds.
    nlohmann::json next(const RoundMeasurer& measurer, Progress& progress);

private:
    std::filesystem::path folder_;
    std::string model_;
    Target target_;
    RoundLimits limits_;
    int written_ = 0, done_ = 0;
    std::map<Hash128, std::string> failed_;
};

// The last round in `folder`, if some or all of its results did not come back.
std::optional<std::filesystem::path> unanswered_round(const std::filesystem::path& folder);

}  // namespace loopegg
