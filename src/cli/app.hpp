// The whole command line as one tree, built from the table of commands. Help, completion and the manual are made from this tree.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/command.hpp"

namespace loopegg {

struct Parsed {
    bool json = false, quiet = false;
    Action action;  // empty when no command was given
};

// `parsed` is filled by parse() and must outlive the result.
std::unique_ptr<CLI::App> make_app(Parsed& parsed);

// The commands below a command, and its options, in the order of its help.
std::vector<CLI::App*> commands_of(const CLI::App& app);
std::vector<const CLI::Option*> options_of(const CLI::App& app);  // with names: '-q', '--quiet'
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);
std::vector<std::string> spellings(const CLI::Option& option);  // "-q", "--quiet"

// What is wrong with words that parse() refused for `reason`. The diagnostic names an unknown command or option, and the known name that is nearest.
Diagnostic misuse(const CLI::App& app, const std::vector<std::string>& words, const std::string& reason);

}  // namespace loopegg
