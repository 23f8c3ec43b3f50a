// The whole command line as one tree, built from the table of commands. Help, completion and the manual are made from this tree.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/command.hpp"

#include <CLI/CLI.hpp>

namespace loopegg {

struct Parsed {
    bool json = false, quiet = false;
    Action action;  // empty when no command was given
};

// `parsed` is filled by parse() and must outlive the result.
std::unique_ptr<CLI::App> make_app(Parsed& parsed);

// Refuses, for an option that is a number by its type, what is none: 'not a number', an infinity, less than nothing. The library reads -1 and 1e20 written
// out as the largest whole number.
void refuse_nonsense(CLI::Option& option);

// Shows the unit of a number in place of its type. A number has its unit from here alone: after ->type_name(), nothing knows that it is one.
CLI::Option* in_unit(CLI::Option* number, const char* unit);

// The commands below a command, and its options, in the order of its help.
std::vector<CLI::App*> commands_of(const CLI::App& app);
std::vector<const CLI::Option*> options_of(const CLI::App& app);  // with names: '-q', '--quiet'
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);
std::vector<std::string> spellings(const CLI::Option& option);  // "-q", "--quiet"

// What is wrong with words that parse() refused for `reason`. The diagnostic names an unknown command or option, and the known name that is nearest.
Diagnostic misuse(const CLI::App& app, const std::vector<std::string>& words, const std::string& reason);

// How help is laid out: --help shows what most people need, --help-all every option and every command.

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
