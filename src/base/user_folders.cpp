#include "base/user_folders.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "base/error.hpp"

namespace loopegg {
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
