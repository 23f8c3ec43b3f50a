#include "base/places.hpp"

#include <cstdlib>

#include "source_root.hpp"

namespace loopegg {
namespace fs = std::filesystem;

fs::path shipped(std::string_view relative) {
    if (const char* home = std::getenv("LOOPEGG_HOME")) return fs::path(home) / relative;
    std::error_code none;
    const fs::path installed = fs::read_symlink("/proc/self/exe", none).parent_path().parent_path() / "share" / "loopegg" / relative;
    if (fs::exists(installed, none)) return installed;
    return fs::path(source_root) / relative;
}

}  // namespace loopegg
