// Where the files that come with the program are: rule files, targets, examples, and parts that are opened at need.
#pragma once
#include <filesystem>
#include <string_view>

namespace loopegg {

// The path of a shipped file or folder ("rules/default.rules"): below LOOPEGG_HOME if that is set, else in the installation that the
// program was started from, else in the source tree that it was built from.
std::filesystem::path shipped(std::string_view relative);

// A part of the program that is opened at need ("libloopegg_onnx.so"): next to the program, in its installation's library folder, else
// where the build left it.
std::filesystem::path module_library(std::string_view file, const std::filesystem::path& built);

// A file of a package from PyPI ("tvm/lib/libtvm_compiler.so"): below one of the folders in LOOPEGG_SITE (with ':' between them), else next to loopegg where
// loopegg itself was installed as such a package, else below `built`, the folder that the build used.
std::filesystem::path package_file(std::string_view relative, const std::filesystem::path& built);

// Where a user's cache and settings are. A variable of the environment that is no absolute path counts as not set, because it would lead
// to wherever a command happens to be started; then the system is asked for the user's home.

// XDG_CACHE_HOME/loopegg/NAME, or ~/.cache/loopegg/NAME. Throws UserError where there is no home.
std::filesystem::path in_cache_folder(std::string_view name);

// XDG_CONFIG_HOME/loopegg/NAME, or ~/.config/loopegg/NAME. Throws UserError where there is no home.
std::filesystem::path in_config_folder(std::string_view name);

}  // namespace loopegg
