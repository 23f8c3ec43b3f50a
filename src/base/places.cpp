#include "base/places.hpp"

#include <pwd.h>
#include <unistd.h>
#include <cstdlib>
#include <optional>

#include "base/embedded.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "source_root.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {
fs::path shipped_folder;
}

void set_shipped_folder(const fs::path& folder) { shipped_folder = folder; }

fs::path shipped(std::string_view relative) {
    if (const char* home = std::getenv("LOOPEGG_HOME")) return fs::path(home) / relative;
    if (!shipped_folder.empty()) return shipped_folder / relative;
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

namespace fs = std::filesystem;
namespace {

// A folder that a variable of the environment names. One that is empty or relative would lead to wherever a command happens to be started.
std::optional<fs::path> named_folder(const char* variable) {
    const char* value = std::getenv(variable);
    if (!value || !fs::path(value).is_absolute()) return std::nullopt;
    return fs::path(value);
}

fs::path home_folder() {
    if (const auto home = named_folder("HOME")) return *home;
    if (const passwd* user = ::getpwuid(::getuid()); user && user->pw_dir && fs::path(user->pw_dir).is_absolute()) return user->pw_dir;
    throw UserError(Diagnostic{"there is no home folder: HOME names none, and the system knows none of this user", {}, "set HOME to an absolute path"});
}

}  // namespace

fs::path in_cache_folder(std::string_view name) {
    const auto cache = named_folder("XDG_CACHE_HOME");
    return (cache ? *cache : home_folder() / ".cache") / "loopegg" / name;
}

fs::path in_config_folder(std::string_view name) {
    const auto config = named_folder("XDG_CONFIG_HOME");
    return (config ? *config : home_folder() / ".config") / "loopegg" / name;
}

}  // namespace loopegg
