// 'loopegg explain': how each site of a run came to be what it is, step by step; --check replays the proofs.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/sexpr.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "nest/term/grammar.hpp"
#include "optimize/audit/check_run.hpp"

namespace loopegg {
namespace cmd_explain {

using nlohmann::json;

std::string short_nest(const std::string& nest) { return to_string(bare(parse_term(nest))); }

// The rules over sites by which the compiled network made one step of several nodes.
void add_fused(const std::filesystem::path& network, json& sites) {
    if (!std::filesystem::exists(network)) return;  // a target without a compiler here
    const json steps = parse_json_file(network).at("steps");
    for (auto& site : sites)
        for (const auto& step : steps)
            if (step.contains("fused") && !step["fused"].empty() && (step.at("site") == site.at("name") || step.at("site") == site.value("restored_by", "")))
                site["fused"] = step["fused"];
}

void print_site(const json& site) {
    fmt::print("{}: {}\n", site["name"].get<std::string>(), site["sequence"].get<std::string>());
    if (site.contains("fused") && !site["fused"].empty())
        fmt::print("    made one with what follows: {}\n", join(site["fused"].get<std::vector<std::string>>(), ", "));
    if (site.contains("restored_by")) fmt::print("    {} makes all channels of those that it computes\n", site["restored_by"].get<std::string>());
    if (site["steps"].empty()) {
        fmt::print("    as it was\n");
        return;
    }
    fmt::print("    {:<28} {}\n", "", short_nest(site["original"]));
    for (const auto& step : site["steps"]) {
        std::string with;
        for (const auto& [name, value] : step["with"].items())
            if (value.get<std::string>().size() <= 24) with += fmt::format(" {}={}", name, value.get<std::string>());
        fmt::print("  {} {:<28} {}\n", step["kind"] == "neural" ? "~>" : "= ", step["rule"].get<std::string>() + with, short_nest(step["after"]));
        for (const char* judged : {"judged", "asked"})  // "asked" until 0.2
            if (step.contains(judged)) fmt::print("       {}\n", step[judged]["why"].get<std::string>());
    }
}

void print_checks(const RunChecks& checks) {
    const auto bad = std::count_if(checks.sites.begin(), checks.sites.end(), [](const SiteCheck& c) { return !c.valid; });
    fmt::print("\n");
    for (const std::string& h : checks.held) fmt::print("holds: {}\n", h);
    for (const std::string& f : checks.faults) fmt::print("NOT VALID: {}\n", f);
    for (const SiteCheck& c : checks.sites)
        if (!c.valid) fmt::print("{}: NOT VALID: {}\n", c.site, c.why);
    fmt::print("{} of {} sites check\n", checks.sites.size() - static_cast<std::size_t>(bad), checks.sites.size());
}

void print_network(const json& network) {
    fmt::print("the network as a whole:\n");
    int exact = 0;
    const auto print_exact = [&] {
        if (exact > 0) fmt::print("  =  {} exact step{}\n", exact, exact == 1 ? "" : "s");
        exact = 0;
    };
    for (const auto& step : network.at("steps")) {
        if (!step["neural"].get<bool>()) {
            ++exact;
            continue;
        }
        print_exact();
        std::string with;
        const json values = step.value("with", json::object());
        for (const auto& [name, value] : values.items()) with += fmt::format(" {}={}", name, value.get<std::string>());
        fmt::print("  ~> {:<28} {}\n", step["rule"].get<std::string>() + with, join(step["sites"].get<std::vector<std::string>>(), ", "));
        for (const auto& guard : step["guards"]) {
            const std::string why = guard["why"];
            if (!why.empty()) fmt::print("       {} {}\n", guard["guard"].get<std::string>(), why);
        }
    }
    print_exact();
}

Action setup(CLI::App& app) {
    struct Options {
        std::string dir, site = "*", recheck;
        bool check = false;
    };
    auto o = std::make_shared<Options>();
    app.add_option("DIR", o->dir, "the folder that 'loopegg optimize' wrote")->required();
    app.add_option("--site", o->site, "only sites that match this glob")->capture_default_str();
    app.add_flag("--check", o->check, "check the whole folder: its files, plan, proofs, schedules, figures and evidence, and run the compiled network");
    add_unproved_option(app);
    app.add_option("--recheck", o->recheck, "the original MODEL: check, and have the guard judge the returned network again");
    return [o](Session& session) {
        const std::filesystem::path folder = o->dir;
        finish_update(folder);
        const bool check = o->check || !o->recheck.empty();
        if (!std::filesystem::exists(std::filesystem::path(o->dir) / "result.json"))
            throw UserError(
                Diagnostic{"'" + o->dir + "' is not the folder of a run: it has no result.json", {}, "make one with 'loopegg optimize MODEL --out DIR'"});
        const json result = parse_json_file(std::filesystem::path(o->dir) / "result.json");
        json picked = json::array();
        std::vector<std::string> names;
        const json sequences = parse_json_file(std::filesystem::path(o->dir) / "sequences.json");
        for (const auto& site : sequences.at("sites")) {
            names.push_back(site.at("name"));
            if (glob_matches(o->site, names.back())) picked.push_back(site);
        }
        if (picked.empty()) throw UserError(Diagnostic{"no site matches '" + o->site + "'", {}, did_you_mean(o->site, names)});
        for (auto& site : picked)
            for (const auto& measured : result.at("sites")) {
                if (measured.at("name") != site.at("name")) continue;
                if (measured.contains("nest_after")) site["schedule"] = measured["nest_after"];
                if (measured.contains("restoring"))
                    site["restoring"] = measured["restoring"].at("nest"), site["restored_by"] = measured["restoring"].at("name");
            }
        add_fused(std::filesystem::path(o->dir) / "network.json", picked);
        RunChecks checks;
        if (check) checks = check_run(folder, o->recheck, session.progress);
        if (session.json) {
            for (const SiteCheck& c : checks.sites)
                for (auto& site : picked)
                    if (site.at("name") == c.site) site["check"] = {{"valid", c.valid}, {"why", c.why}, {"steps", c.steps}};
            json answer{{"ok", checks.valid()}, {"sites", picked}};
            if (check) answer["held"] = checks.held, answer["faults"] = checks.faults;
            if (sequences.contains("network")) answer["network"] = sequences["network"].at("steps");
            session.answer(answer);
        } else {
            if (sequences.contains("network") && o->site == "*") print_network(sequences["network"]);
            for (const auto& site : picked) print_site(site);
            if (check) print_checks(checks);
        }
        return checks.valid() ? 0 : 1;
    };
}

}  // namespace cmd_explain

const Command explain_command{"explain", "show how each site was derived, and check a run", "loopegg explain out --site 'layer3.*' --check",
                              cmd_explain::setup};

}  // namespace loopegg
