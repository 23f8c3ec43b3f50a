// How help is laid out: --help shows what most people need, --help-all every option and every command.
#pragma once
#include <initializer_list>
#include <string>

#include <CLI/CLI.hpp>

namespace loopegg {

// Moves every option of `app` that is not named here under a heading that only --help-all shows. Flags that all commands share stay.
void keep_in_short_help(CLI::App& app, std::initializer_list<const char*> names);

class HelpFormat : public CLI::Formatter {
public:
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

private:
    std::string options(const CLI::App* app, CLI::AppFormatMode mode) const;
    std::string commands(const CLI::App* app, CLI::AppFormatMode mode) const;
};

}  // namespace loopegg
