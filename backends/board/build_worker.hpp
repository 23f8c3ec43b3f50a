// The worker that is copied to boards. It is built here for their architecture, linked statically, and kept.
#pragma once
#include <filesystem>
#include <string>

namespace loopegg {

// The program for "aarch64" or "x86_64". The first call builds it, and later calls find it. Where the cross compiler is missing, throws UserError that names
// its Debian package.
std::filesystem::path board_worker_program(const std::string& architecture);

}  // namespace loopegg
