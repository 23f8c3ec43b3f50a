// Scripts that let a shell complete loopegg's commands and options, written from the command tree.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

namespace loopegg {

std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace loopegg
