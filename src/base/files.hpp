// Reading whole files and writing them so that nobody ever sees half of one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/source.hpp"

namespace loopegg {

// Gives the whole file. Throws UserError in words that a person can act on: missing, a directory, not readable, larger than max_bytes.
std::string read_file(const std::filesystem::path& path, std::uintmax_t max_bytes = std::uintmax_t{1} << 40);
SourcePtr read_source(const std::filesystem::path& path, std::uintmax_t max_bytes = std::uintmax_t{1} << 30);

// Writes a temporary file next to the target, flushes it to disk and renames it. So a reader sees the old file or the whole new one, and never a part.
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace loopegg
