#include "cli/app.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "version.hpp"

namespace loopegg {
void Session::answer(const nlohmann::json& object) const {
    std::string text = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (fmt::print("{}\n", text); std::fflush(stdout) != 0) throw UserError("cannot write the answer to standard output");
}

namespace {

// Flags that belong to the command hold for the commands below it too: 'loopegg rules check F --json'.
void share_flags(CLI::App& app) {
    for (CLI::App* below : commands_of(app)) {
        below->fallthrough();
        share_flags(*below);
    }
}

// Every command takes --help-all. Where it shows what --help shows, help does not mention it.
void accept_help_all(CLI::App& app) {
    if (!app.get_help_all_ptr()) app.set_help_all_flag("--help-all", "print every option and stop")->group("");
    for (CLI::App* below : commands_of(app)) accept_help_all(*below);
}

void refuse_nonsense_numbers(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) refuse_nonsense(*option);
    for (CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) refuse_nonsense_numbers(*below);
}

std::string full_name(const CLI::App& app) {
    std::string name = app.get_name();
    for (const CLI::App* up = app.get_parent(); up; up = up->get_parent()) name = up->get_name() + " " + name;
    return name;
}

std::string hint(const CLI::App& at, const std::string& typed, const std::vector<std::string>& names) {
    std::string near = did_you_mean(typed, names);
    return near.empty() ? fmt::format("see '{} --help'", full_name(at)) : near;
}

CLI::App* add_command(CLI::App& app, const Command& command, Parsed& parsed) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->add_flag("--json", parsed.json, "print one JSON object on standard output");
    sub->add_flag("-q,--quiet", parsed.quiet, "show no progress");
    sub->footer(std::string("Example:\n  ") + command.example);
    Action action = command.setup(*sub);
    sub->final_callback([&parsed, action] { parsed.action = action; });
    share_flags(*sub);
    accept_help_all(*sub);
    return sub;
}

}  // namespace

void refuse_nonsense(CLI::Option& option) {
    const std::string type = option.get_type_name();
    if (type.starts_with("UINT"))
        option.check(
            [](const std::string& word) {
                return number_in<std::uint64_t>(word) ? std::string() : "expected a whole number from 0 to 18446744073709551615, found " + word;
            },
            "");
    if (type.starts_with("INT"))
        option.check(
            [](const std::string& word) {
                return number_in<std::int64_t>(word).value_or(-1) >= 0 ? std::string()
                                                                       : "expected a whole number from 0 on, of at most 18 digits, found " + word;
            },
            "");
    if (type.starts_with("FLOAT"))
        option.check(
            [](const std::string& word) {
                const auto value = number_in<double>(word);
                return value && std::isfinite(*value) && *value >= 0 ? std::string() : "expected a number from 0 on, found " + word;
            },
            "");
}

CLI::Option* in_unit(CLI::Option* number, const char* unit) {
    refuse_nonsense(*number);
    return number->type_name(unit);
}

std::unique_ptr<CLI::App> make_app(Parsed& parsed) {
    auto app = std::make_unique<CLI::App>("Makes neural networks faster by rewriting them.", "loopegg");
    app->set_version_flag("--version", std::string(version), "print the version and stop");
    app->set_help_flag("-h,--help", "print this help and stop");
    app->require_subcommand(0, 1);  // after the first, a word that happens to name a command is an argument
    app->formatter(std::make_shared<HelpFormat>());
    app->get_formatter()->column_width(26);
    app->get_formatter()->label("SUBCOMMAND", "COMMAND");
    app->footer("'loopegg COMMAND --help' describes one command, with an example. 'loopegg --help-all' lists the other commands.");
    for (const CommandGroup& group : command_groups())
        for (const Command& c : group.commands) add_command(*app, c, parsed)->group(group.name);
    app->set_help_all_flag("--help-all", "list every command and stop");
    refuse_nonsense_numbers(*app);
    return app;
}

std::vector<CLI::App*> commands_of(const CLI::App& app) {
    std::vector<CLI::App*> found;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
        if (!sub->get_name().empty() && !sub->get_group().empty()) found.push_back(const_cast<CLI::App*>(sub));
    return found;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
    return app.get_options([](const CLI::Option* o) { return o->nonpositional() && !o->get_group().empty(); });
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
    return app.get_options([](const CLI::Option* o) { return o->get_positional() && !o->get_group().empty(); });
}

std::vector<std::string> spellings(const CLI::Option& option) {
    std::vector<std::string> all;
    for (const std::string& s : option.get_snames()) all.push_back("-" + s);
    for (const std::string& l : option.get_lnames()) all.push_back("--" + l);
    return all;
}

Diagnostic misuse(const CLI::App& app, const std::vector<std::string>& words, const std::string& reason) {
    const CLI::App* at = &app;
    size_t next = 0;
    // Down to the command that was meant; a word that is none, where only commands can be, is the mistake.
    for (; next < words.size() && !words[next].starts_with('-'); ++next) {
        std::vector<CLI::App*> below = commands_of(*at);
        auto named = std::find_if(below.begin(), below.end(), [&](const CLI::App* c) { return c->get_name() == words[next]; });
        if (named != below.end()) {
            at = *named;
            continue;
        }
        if (below.empty() || !positionals_of(*at).empty()) break;
        std::vector<std::string> names;
        for (const CLI::App* c : below) names.push_back(c->get_name());
        return {fmt::format("'{}' has no command '{}'", full_name(*at), words[next]), {}, hint(*at, words[next], names)};
    }
    std::vector<std::string> names, hidden;  // a hidden option has a message of its own
    for (const CLI::App* level = at; level; level = level->get_parent())
        for (const CLI::Option* o : level->get_options())
            for (const std::string& s : spellings(*o)) (o->get_group().empty() ? hidden : names).push_back(s);
    for (; next < words.size() && words[next] != "--"; ++next) {
        std::string word = words[next].substr(0, words[next].find('='));
        const auto among = [&](const std::vector<std::string>& known) { return std::find(known.begin(), known.end(), word) != known.end(); };
        if (word.size() > 2 && word.starts_with("--") && !among(names) && !among(hidden))
            return {fmt::format("'{}' has no option '{}'", full_name(*at), word), {}, hint(*at, word, names)};
    }
    return {fmt::format("{}: {}", full_name(*at), reason), {}, fmt::format("see '{} --help'", full_name(*at))};
}

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
