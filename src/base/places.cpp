#include "base/places.hpp"

#include <cstdlib>

#include "base/text.hpp"
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

fs::path package_file(std::string_view relative, const fs::path& built) {
    std::error_code none;
    if (const char* folders = std::getenv("LOOPEGG_SITE")) {
        for (const std::string& folder : split(folders, ':'))
            if (fs::exists(fs::path(folder) / relative, none)) return fs::path(folder) / relative;
        return fs::path(folders) / relative;
    }
    // SITE/loopegg/_program/bin/loopegg
    const fs::path program = fs::read_symlink("/proc/self/exe", none), root = program.parent_path().parent_path();
    if (root.filename() == "_program" && fs::exists(root.parent_path().parent_path() / relative, none)) return root.parent_path().parent_path() / relative;
    return built / relative;
}

fs::path module_library(std::string_view file, const fs::path& built) {
    std::error_code none;
    const fs::path here = fs::read_symlink("/proc/self/exe", none).parent_path();
    for (const fs::path& path : {here / file, here.parent_path() / library_folder / "loopegg" / file})
        if (fs::exists(path, none)) return path;
    return built;
}

}  // namespace loopegg
