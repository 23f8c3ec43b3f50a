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

fs::path in_cache_folder(std::string_view name) {
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) return fs::path(cache) / "loopegg" / name;
    const char* home = std::getenv("HOME");
    return fs::path(home ? home : ".") / ".cache" / "loopegg" / name;
}

fs::path module_library(std::string_view file, const fs::path& built) {
    std::error_code none;
    const fs::path here = fs::read_symlink("/proc/self/exe", none).parent_path();
    for (const fs::path& path : {here / file, here.parent_path() / library_folder / "loopegg" / file})
        if (fs::exists(path, none)) return path;
    return built;
}

}  // namespace loopegg
