// What a library inside another program needs besides what the program has: where shipped files are, and complaints as data.
#pragma once
#include <filesystem>

#include <nlohmann/json_fwd.hpp>

#include "base/error.hpp"

namespace loopegg {

// Where the shipped files are, unless LOOPEGG_HOME is set. Call it before anything reads them.
void set_shipped_folder(const std::filesystem::path& folder);

// {"message", "file", "line", "column", "hint"}, the last four where they are known.
nlohmann::json as_json(const Diagnostic& d);

}  // namespace loopegg
