// SHA-256 (FIPS 180-4): the hash by which others recognise a file, with any program of theirs.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace loopegg {

std::string sha256_of(std::string_view bytes);  // 64 lower-case digits
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace loopegg
