// Where a user's cache and settings are. A variable of the environment that is no absolute path counts as not set, because it would lead
// to wherever a command happens to be started; then the system is asked for the user's home.
#pragma once
#include <filesystem>
#include <string_view>

namespace loopegg {

// XDG_CACHE_HOME/loopegg/NAME, or ~/.cache/loopegg/NAME. Throws UserError where there is no home.
std::filesystem::path in_cache_folder(std::string_view name);

// XDG_CONFIG_HOME/loopegg/NAME, or ~/.config/loopegg/NAME. Throws UserError where there is no home.
std::filesystem::path in_config_folder(std::string_view name);

}  // namespace loopegg
