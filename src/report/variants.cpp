#include "report/variants.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "report/words.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

std::optional<double> number_at(const json& j, const char* key) {
    const auto it = j.is_object() ? j.find(key) : j.end();
    return it != j.end() && it->is_number() ? std::optional(it->get<double>()) : std::nullopt;
}

std::string text_at(const json& j, const char* key) {
    const auto it = j.is_object() ? j.find(key) : j.end();
    return it != j.end() && it->is_string() ? it->get<std::string>() : "";
}

SiteVariant variant_in(const FinishedRun& run, const char* stage) {
    SiteVariant v;
    v.run = run.folder.filename().empty() ? run.folder.parent_path().filename().string() : run.folder.filename().string();
    v.model = run.model, v.target = run.target, v.stage = stage;
    return v;
}

void read_loss(const json& of, SiteVariant& v) {
    const json loss = of.value("loss", json());
    v.points = number_at(loss, "points"), v.low = number_at(loss, "low"), v.high = number_at(loss, "high");
}

// One verdict about a network is about each site that differs from the original.
void add_judged(const FinishedRun& run, const json& verdict, std::vector<SiteVariant>& all) {
    const json sites = verdict.value("sites", json::object());
    if (!sites.is_object()) return;
    for (const auto& [site, change] : sites.items()) {
        SiteVariant v = variant_in(run, "judged");
        v.network = text_at(verdict, "variant_key"), v.site = site, v.steps = change.is_string() ? change.get<std::string>() : change.dump();
        v.allowed = verdict.value("allowed", true), v.verdict = text_at(verdict, "why");
        read_loss(verdict, v);
        all.push_back(std::move(v));
    }
}

std::string steps_of(const json& plan_step) {
    std::vector<std::string> steps;
    for (const json& a : plan_step.value("apply", json::array())) {
        std::string one = text_at(a, "rule");
        const json values = a.value("with", json::object());
        for (const auto& [variable, value] : values.items()) one += " " + variable + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
        if (const std::string restore = text_at(a, "restore"); !restore.empty()) one += " restore=" + restore;
        steps.push_back(one);
    }
    return join(steps, "; ");
}

// Why a network that was timed is not the answer, as far as its figures tell.
std::string why_not(const FinishedRun& run, const SiteVariant& v, const json* chosen) {
    if (v.chosen) return "";
    if (!v.allowed) return "the guard refuses it";
    if (!v.ms) return "it was not timed";
    if (!chosen) return v.original_ms && *v.ms >= *v.original_ms ? "it is not faster than the original" : run.why;
    const auto ms = number_at(*chosen, "latency_ms");
    if (ms && *v.ms > *ms) return fmt::format("the chosen network is faster ({:.3f} ms)", *ms);
    const auto points = number_at(chosen->value("loss", json()), "points");
    if (points && v.points && *v.points > *points) return fmt::format("the chosen network is expected to lose less ({:.2f} points)", *points);
    return "the run's limits and objective favour the chosen network";
}

void add_timed(const FinishedRun& run, const json& network, const json* chosen, std::vector<SiteVariant>& all) {
    SiteVariant v = variant_in(run, "timed");
    v.network = text_at(network, "finalist"), v.allowed = network.value("allowed", true), v.chosen = chosen == &network;
    read_loss(network, v);
    v.ms = number_at(network, "latency_ms"), v.original_ms = number_at(network, "baseline_ms");
    v.why_not = why_not(run, v, chosen);
    for (const json& step : network.value("plan", json::object()).value("steps", json::array())) {
        v.site = text_at(step, "site"), v.steps = steps_of(step);
        all.push_back(v);
    }
}

std::string cell(const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : ""; }

}  // namespace

std::vector<SiteVariant> variants_of(const FinishedRun& run) {
    std::vector<SiteVariant> all;
    const json networks = run.result.value("networks", json::array());
    const json* chosen = nullptr;
    for (const json& n : networks)
        if (n.value("chosen", false)) chosen = &n;
    for (const json& n : networks) add_timed(run, n, chosen, all);
    const std::filesystem::path evidence = run.folder / "evidence.jsonl";
    if (!std::filesystem::exists(evidence)) return all;
    for (const std::string& line : split(read_file(evidence), '\n'))
        if (const json verdict = json::parse(line, nullptr, false); verdict.is_object()) add_judged(run, verdict, all);
    return all;
}

std::string variants_csv(const std::vector<FinishedRun>& runs) {
    std::string out = "run,model,target,stage,network,site,steps,allowed,verdict,points,low,high,ms,original_ms,chosen,why_not\n";
    for (const FinishedRun& run : runs)
        for (const SiteVariant& v : variants_of(run)) {
            std::vector<std::string> cells{v.run,
                                           v.model,
                                           v.target,
                                           v.stage,
                                           v.network,
                                           v.site,
                                           v.steps,
                                           v.allowed ? "true" : "false",
                                           v.verdict,
                                           cell(v.points),
                                           cell(v.low),
                                           cell(v.high),
                                           cell(v.ms),
                                           cell(v.original_ms),
                                           v.chosen ? "true" : "false",
                                           v.why_not};
            for (std::string& c : cells) c = escape_csv(c);
            out += join(cells, ",") + "\n";
        }
    return out;
}

}  // namespace loopegg
