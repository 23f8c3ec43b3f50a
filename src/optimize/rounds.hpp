// A search whose times come from elsewhere, round by round: each round is a bundle in a folder, and its results come back beside it.
//
// A run answers with what is known so far, and leaves a round of programs that it wants measured. When the results are there, the same command goes on from
// them. Times are in the store, so nothing is lost when a process is killed, and nothing is measured twice.
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
    int rounds = 6;      // of a whole search; 0: none, so that all is estimated
    int programs = 300;  // of one round, whole networks aside
};

class Rounds {
public:
    // The rounds in `folder` so far. `model` tells the network from others. Throws UserError for rounds of another network or target.
    Rounds(std::filesystem::path folder, std::string model, Target target, RoundLimits limits);

    // Takes in all results that came back. Throws UserError for results that no runner writes, and then keeps nothing of that round.
    void take_in(const StoreAddress& store);

    int done() const { return done_; }                                        // whose results were taken in
    const std::map<Hash128, std::string>& failed() const { return failed_; }  // programs that came to nothing, and why

    // Writes what `measurer` wants as the next round, unless one is out, none is left or nothing is wanted. The last of all has only the networks that the
    // answer hangs on, so that the answer stays what it is. Returns what result.json says of rounds.
    nlohmann::json next(const RoundMeasurer& measurer, Progress& progress);

private:
    std::filesystem::path folder_;
    std::string model_;
    Target target_;
    RoundLimits limits_;
    int written_ = 0, done_ = 0;
    std::map<Hash128, std::string> failed_;
};

// The last round in `folder`, where its results did not come back, or not all of them.
std::optional<std::filesystem::path> unanswered_round(const std::filesystem::path& folder);

}  // namespace loopegg
