// What a guard answers.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace loopegg {

// A refusal is a value with its reason, never an exception.
struct Verdict {
    bool allowed = false;
    std::string why{};          // one line for a report: "score 0.71 of the original, below 0.85"
    nlohmann::json evidence{};  // what the answer rests on (oracle, seeds, scores, threshold), kept for the checker to replay
};

}  // namespace loopegg
