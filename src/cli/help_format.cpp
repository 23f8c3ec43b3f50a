#include "cli/help_format.hpp"

#include <algorithm>

#include "cli/command.hpp"

namespace loopegg {
namespace {

constexpr const char* rare_options = "More options";

bool is_in_short_help(const std::string& group) {
    const auto& groups = command_groups();
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const CommandGroup& g) { return g.name == group; });
    return found == groups.end() || found->in_short_help;
}

}  // namespace

void keep_in_short_help(CLI::App& app, std::initializer_list<const char*> names) {
    std::vector<CLI::Option*> rare = app.get_options([&](const CLI::Option* o) {
        const bool shared = o == app.get_help_ptr() || o->check_lname("json") || o->check_lname("quiet");
        const bool named = std::any_of(names.begin(), names.end(), [&](const char* name) { return o->check_name(name); });
        return o->nonpositional() && !o->get_group().empty() && !shared && !named;
    });
    for (CLI::Option* option : rare) option->group(rare_options);
    app.set_help_all_flag("--help-all", "print every option and stop");
}

std::string HelpFormat::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) + options(app, mode) + commands(app, mode) + "\n" +
           make_footer(app);
}

std::string HelpFormat::options(const CLI::App* app, CLI::AppFormatMode mode) const {
    std::string out;
    for (const std::string& group : app->get_groups()) {
        if (group.empty() || (group == rare_options && mode != CLI::AppFormatMode::All)) continue;
        const auto members = app->get_options([&](const CLI::Option* o) { return o->get_group() == group && o->nonpositional(); });
        if (!members.empty()) out += make_group(group, false, members);
    }
    return out;
}

std::string HelpFormat::commands(const CLI::App* app, CLI::AppFormatMode mode) const {
    std::vector<std::string> groups;
    for (const CLI::App* below : app->get_subcommands({})) {
        const std::string& group = below->get_group();
        if (group.empty() || (mode != CLI::AppFormatMode::All && !is_in_short_help(group))) continue;
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
    }
    std::string out;
    for (const std::string& group : groups) {
        out += "\n" + group + ":\n";
        for (const CLI::App* below : app->get_subcommands([&](const CLI::App* a) { return a->get_group() == group; })) out += make_subcommand(below);
    }
    return out;
}

}  // namespace loopegg
