// The images that roundings are judged on, and those that the scales of int8 numbers are measured on.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "backends/network/rounding_error.hpp"

namespace loopegg {

struct RoundingData {
    std::vector<std::vector<Tensor>> calibration{};  // inputs that the scales of int8 numbers are measured on; empty: not asked for
    JudgedInputs judged{};                           // others than those
    std::string source{};                            // "cifar10 /data", "synthetic", "normal noise"
    bool images = false;                             // from the user's data
};

// What `data` (a folder, or empty) has for a network. With `scales`, half of a folder's images are for calibration. Throws UserError where the network has
// several inputs, and where the folder has too few images for both halves.
RoundingData rounding_data(const std::string& data, const Graph& graph, std::uint64_t seed, bool scales);

void require_data_for_scales(const std::string& data);  // throws UserError where there is none

// The part of result.json's "rounding" that the network decides, and of the answer of 'loopegg compile'.
nlohmann::json rounding_json(const RoundedSites& rounded);

}  // namespace loopegg
