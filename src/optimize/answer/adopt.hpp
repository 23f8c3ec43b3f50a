// Puts weights that were trained elsewhere into the network that a run returned: every form of it is made again, with the kernels that it had.
#pragma once
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/progress.hpp"

namespace loopegg {

// Writes the whole out folder `from` into `to`, an empty folder, with these weights in place of the returned network's. The returned result.json says
// whose weights they are (`adopted`). Throws UserError that names each tensor that is missing or has another shape. The scales of int8 numbers are measured
// anew on `data`, because other weights compute other values.
nlohmann::json adopt_weights(const std::filesystem::path& from, const std::filesystem::path& weights_file, const std::string& data,
                             const std::filesystem::path& to, Progress& progress);

}  // namespace loopegg
