// Every option of every command that takes a number refuses what is none.
#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <vector>

#include "cli/app.hpp"

using namespace loopegg;

namespace {

// Where an option is: the commands on the way to it, and its index among theirs.
struct Place {
    std::vector<std::string> commands;
    std::size_t option;
};

CLI::App* command_at(CLI::App& app, const std::vector<std::string>& names) {
    CLI::App* at = &app;
    for (const std::string& name : names) at = at->get_subcommand(name);
    return at;
}

std::vector<Place> places_of_options(CLI::App& app) {
    std::vector<Place> all;
    const std::function<void(CLI::App&, const std::vector<std::string>&)> visit = [&](CLI::App& at, const std::vector<std::string>& names) {
        for (std::size_t i = 0; i < at.get_options().size(); ++i) all.push_back({names, i});
        for (CLI::App* below : at.get_subcommands([](const CLI::App*) { return true; })) {
            std::vector<std::string> longer = names;
            longer.push_back(below->get_name());
            visit(*below, longer);
        }
    };
    visit(app, {});
    return all;
}

// Whether the option takes the word. The program is made anew, because an option keeps what it was given.
bool takes(CLI::App& app, const Place& place, const std::string& word) {
    CLI::Option& option = *command_at(app, place.commands)->get_options()[place.option];
    option.clear();
    for (int i = 0; i < std::max(1, option.get_items_expected_min()); ++i) option.add_result(word);
    try {
        option.run_callback();
        return true;
    } catch (const CLI::ParseError&) {
        return false;
    }
}

}  // namespace

// Numeric is what takes some number and no word, so the names of types and units do not matter.
TEST_CASE("every numeric option refuses what is no number, infinite or negative", "[unit]") {
    Parsed parsed;
    const std::unique_ptr<CLI::App> app = make_app(parsed);
    int numeric = 0;
    for (const Place& place : places_of_options(*app)) {
        const CLI::Option& option = *command_at(*app, place.commands)->get_options()[place.option];
        if (option.get_type_size_max() == 0 || option.get_items_expected_max() == 0 || takes(*app, place, "words")) continue;
        INFO((place.commands.empty() ? "loopegg" : place.commands.back()) << " " << option.get_name());
        for (const char* nonsense :
             {"nan", "NaN", "-nan", "inf", "-inf", "infinity", "1e999", "-1", "-0.5", "-9223372036854775808", "99999999999999999999999", "1x", ""})
            if (takes(*app, place, nonsense)) {
                const bool large = std::string(nonsense) == "99999999999999999999999";  // a number like any other where fractions are taken
                CAPTURE(nonsense);
                CHECK((large && takes(*app, place, "0.5")));
            }
        bool some = false;
        for (const char* number : {"0.5", "1", "2", "3"}) some = some || takes(*app, place, number);
        numeric += some;
    }
    CHECK(numeric >= 60);
}
