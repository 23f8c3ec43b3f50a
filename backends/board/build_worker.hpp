// The worker that is copied to boards: built here for their architecture, linked statically, and kept.
#pragma once
#include <filesystem>
#include <string>

namespace loopegg {

// The program for "aarch64" or "x86_64". It is built by the first call and found by later ones. Throws UserError that names the Debian package of the cross
// compiler where that is missing.
std::filesystem::path board_worker_program(const std::string& architecture);

}  // namespace loopegg
