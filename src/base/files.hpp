// Reading regular files, and writing them so that nobody ever sees half of one. Pipes and devices are refused: their readers would wait for ever, or
// never come to an end.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/source.hpp"

namespace loopegg {

// Gives the whole file. Throws UserError in words that a person can act on: missing, a directory, a pipe, not readable, larger than max_bytes.
std::string read_file(const std::filesystem::path& path, std::uintmax_t max_bytes = std::uintmax_t{1} << 40);
SourcePtr read_source(const std::filesystem::path& path, std::uintmax_t max_bytes = std::uintmax_t{1} << 30);

// Gives the bytes from `offset` on, at most `most` of them, and fewer where the file ends. Throws UserError as read_file does.
std::string read_part(const std::filesystem::path& path, std::uintmax_t offset, std::uintmax_t most);

// Throws UserError where the path leads to something that is there and no regular file. It is for files that other libraries open; `doing` is "read".
void refuse_special_file(const char* doing, const std::filesystem::path& path);

// Writes a temporary file beside the target, flushes it to disk and renames it. So a reader sees the old file or the whole new one, and never a part.
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace loopegg
