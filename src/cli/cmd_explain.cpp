// 'loopegg explain': how each site of a run came to be what it is, step by step; --check replays the proofs.
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "nest/term/grammar.hpp"
#include "optimize/network_proof.hpp"
#include "optimize/optimize.hpp"
#include "optimize/replay.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

json read(const std::filesystem::path& file) {
    try {
        return json::parse(read_file(file));
    } catch (const json::exception& e) {
        throw UserError(fmt::format("cannot read '{}': {}", file.string(), e.what()));
    }
}

std::string short_nest(const std::string& nest) { return to_string(bare(parse_term(nest))); }

// The rules over sites by which the compiled network made one step of several nodes.
void add_fused(const std::filesystem::path& network, json& sites) {
    if (!std::filesystem::exists(network)) return;   // a target without a compiler here
    const json steps = read(network).at("steps");
    for (auto& site : sites)
        for (const auto& step : steps)
            if (step.contains("fused") && !step["fused"].empty() && (step.at("site") == site.at("name") || step.at("site") == site.value("restored_by", ""))) site["fused"] = step["fused"];
}

void print_site(const json& site) {
    fmt::print("{}: {}\n", site["name"].get<std::string>(), site["sequence"].get<std::string>());
    if (site.contains("fused") && !site["fused"].empty()) fmt::print("    made one with what follows: {}\n", join(site["fused"].get<std::vector<std::string>>(), ", "));
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
    }
}

void print_network(const json& network) {
    fmt::print("the network as a whole:\n");
    for (const auto& step : network.at("steps")) {
        std::string with;
        for (const auto& [name, value] : step["with"].items()) with += fmt::format(" {}={}", name, value.get<std::string>());
        fmt::print("  ~> {:<28} {}\n", step["rule"].get<std::string>() + with, step["site"].get<std::string>());
    }
}

SiteCheck check_network(const json& sequences, const RuleBook& book) {
    SiteCheck c{"the network", false, "", 0};
    try {
        c.why = network_fault(sequences.at("network"), sequences.at("sites"), book, c.steps);
    } catch (const json::exception& e) {
        c.why = std::string("sequences.json is not whole: ") + e.what();
    }
    c.valid = c.why.empty();
    return c;
}

Action setup(CLI::App& app) {
    struct Options { std::string dir, site = "*"; bool check = false; };
    auto o = std::make_shared<Options>();
    app.add_option("DIR", o->dir, "the folder that 'loopegg optimize' wrote")->required();
    app.add_option("--site", o->site, "only sites that match this glob")->capture_default_str();
    app.add_flag("--check", o->check, "replay every proof against the rule file, and let isl judge the schedules");
    return [o](Session& session) {
        const json result = read(std::filesystem::path(o->dir) / "result.json");
        json picked = json::array();
        std::vector<std::string> names;
        const json sequences = read(std::filesystem::path(o->dir) / "sequences.json");
        for (const auto& site : sequences.at("sites")) {
            names.push_back(site.at("name"));
            if (glob_matches(o->site, names.back())) picked.push_back(site);
        }
        if (picked.empty()) throw UserError(Diagnostic{"no site matches '" + o->site + "'", {}, did_you_mean(o->site, names)});
        for (auto& site : picked)
            for (const auto& measured : result.at("sites")) {
                if (measured.at("name") != site.at("name")) continue;
                if (measured.contains("nest_after")) site["schedule"] = measured["nest_after"];
                if (measured.contains("restoring")) site["restoring"] = measured["restoring"].at("nest"), site["restored_by"] = measured["restoring"].at("name");
            }
        add_fused(std::filesystem::path(o->dir) / "network.json", picked);
        std::vector<SiteCheck> checks;
        if (o->check) {
            const RuleBook book = load_rules(rules_file(result.at("rules")));
            checks = replay(picked, book);
            if (sequences.contains("network") && o->site == "*") checks.push_back(check_network(sequences, book));
        }
        std::size_t bad = 0, steps = 0;
        for (const SiteCheck& c : checks) bad += !c.valid, steps += c.steps;
        if (session.json) {
            for (std::size_t i = 0; i < std::min(picked.size(), checks.size()); ++i)
                picked[i]["check"] = {{"valid", checks[i].valid}, {"why", checks[i].why}, {"steps", checks[i].steps}};
            json answer{{"ok", bad == 0}, {"sites", picked}};
            if (sequences.contains("network")) answer["network"] = sequences["network"].at("steps");
            if (checks.size() > picked.size()) answer["network_check"] = {{"valid", checks.back().valid}, {"why", checks.back().why}, {"steps", checks.back().steps}};
            session.answer(answer);
        } else {
            if (sequences.contains("network") && o->site == "*") print_network(sequences["network"]);
            for (const auto& site : picked) print_site(site);
            for (const SiteCheck& c : checks)
                if (!c.valid) fmt::print("{}: NOT VALID: {}\n", c.site, c.why);
            const bool whole = checks.size() > picked.size();
            const std::size_t bad_sites = bad - (whole && !checks.back().valid ? 1 : 0);
            if (o->check) fmt::print("{} of {} sites check{}, {} steps replayed\n", picked.size() - bad_sites, picked.size(), !whole ? "" : checks.back().valid ? ", and the network" : ", and not the network", steps);
        }
        return bad == 0 ? 0 : 1;
    };
}

}  // namespace

const Command explain_command{"explain", "show how each site came to be what it is, and check it", "loopegg explain out --site 'layer3.*' --check", setup};

}  // namespace loopegg
