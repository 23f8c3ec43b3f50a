// One command of the program: how it is typed, and what it does.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/progress.hpp"

namespace loopegg {

// What every command gets: the flags all commands share, and the way to answer.
struct Session {
    bool json = false;
    Progress& progress;

    // Prints one JSON object on standard output; call at most once, and only when `json` is set.
    void answer(const nlohmann::json& object) const;
};

// Is called after parsing; returns the exit code (0: done, 1: it could not be done). Throws UserError or UsageError for the rest.
using Action = std::function<int(Session&)>;

struct Command {
    const char* name;
    const char* summary;             // one line, for the list in --help
    const char* example;             // shown at the end of the command's own --help
    Action (*setup)(CLI::App& app);  // declares the arguments; the action owns their storage
};

// Commands that belong together, under one heading of the help.
struct CommandGroup {
    std::string name;
    bool in_short_help;  // the others are listed by --help-all
    std::vector<Command> commands;
};

// Every command, in the order of the help. Add a command here and a declaration in commands.hpp.
const std::vector<CommandGroup>& command_groups();

}  // namespace loopegg
