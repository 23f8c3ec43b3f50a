#include "report/run.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "rules/measure.hpp"

namespace loopegg {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

template <class T>
T get(const json& j, const char* key, T otherwise) {
    if (!j.is_object()) return otherwise;
    auto it = j.find(key);
    return it == j.end() || it->is_null() ? otherwise : it->get<T>();
}

json parse(const fs::path& path, std::string_view text, int line = 0) {
    try {
        return json::parse(text);
    } catch (const json::exception& e) {  // also a number that no double holds
        throw UserError(fmt::format("cannot read '{}'{}: it is not JSON ({})", path.string(), line ? fmt::format(", line {}", line) : "", e.what()));
    }
}

// Wrong types inside a file are the file's fault, so they are reported with its name.
template <class F>
void reading(const fs::path& path, F&& body) {
    try {
        body();
    } catch (const json::exception& e) {
        throw UserError(fmt::format("'{}' is not as docs/reference/formats.md says: {}", path.string(), e.what()));
    }
}

GuardResult guard_from_json(const json& j) {
    GuardResult g;
    g.name = get<std::string>(j, "name", "");
    g.why = get<std::string>(j, "why", "");
    g.allowed = get(j, "allowed", false);
    g.ratio = get(j, "ratio", 1.0), g.low = get(j, "low", g.ratio), g.high = get(j, "high", g.ratio);
    if (j.contains("threshold") && j["threshold"].is_array())
        g.threshold = j["threshold"].get<std::vector<double>>();
    else if (j.contains("threshold") && j["threshold"].is_number())
        g.threshold = {j["threshold"].get<double>()};
    if (j.contains("seeds")) g.seeds = j["seeds"].is_array() ? static_cast<int>(j["seeds"].size()) : get(j, "seeds", 0);
    if (const json loss = get(j, "loss", json::object()); loss.contains("points")) {
        g.points = loss.at("points").get<double>();
        g.points_low = get(loss, "low", *g.points), g.points_high = get(loss, "high", *g.points);
    }
    return g;
}

SiteResult site_from_json(const json& j) {
    SiteResult s;
    s.name = j.at("name").get<std::string>();
    s.op = get<std::string>(j, "op", "");
    s.statement = get<std::string>(j, "statement", "");
    s.variant = get<std::string>(j, "variant", "dense");
    s.sequence = get<std::string>(j, "sequence", "dense");
    s.shape = get(j, "shape", std::vector<std::int64_t>{});
    s.steps = get(j, "steps", std::vector<std::string>{});
    s.latency = latency_from_json(j.at("latency"));
    s.original_latency = j.contains("original_latency") ? latency_from_json(j["original_latency"]) : s.latency;
    s.macs = get<std::int64_t>(j, "macs", 0);
    s.original_macs = get(j, "original_macs", s.macs);
    s.parameters = get<std::int64_t>(j, "parameters", 0);
    s.nest_before = get<std::string>(j, "nest_before", ""), s.nest_after = get<std::string>(j, "nest_after", "");
    s.pseudo_before = get<std::string>(j, "pseudo_before", ""), s.pseudo_after = get<std::string>(j, "pseudo_after", "");
    if (const auto p = j.find("precision"); p != j.end()) {
        s.precision = p->at("precision").get<std::string>();
        if (const auto alone = p->find("largest"); alone != p->end()) s.rounding_alone = alone->is_number() ? alone->get<double>() : INFINITY;
    }
    if (j.contains("restoring"))
        s.nest_restoring = get<std::string>(j["restoring"], "nest", ""), s.pseudo_restoring = get<std::string>(j["restoring"], "pseudo", "");
    return s;
}

StepTaken step_from_json(const json& j) {
    StepTaken s;
    s.rule = j.at("rule").get<std::string>();
    s.kind = get<std::string>(j, "kind", "exact");
    const json with = j.value("with", json::object());
    for (auto& [key, value] : with.items()) s.with[key] = value.is_string() ? value.get<std::string>() : value.dump();
    if (j.contains("part") && j["part"].is_number()) s.part = j["part"].get<int>();
    s.before = get<std::string>(j, "before", ""), s.after = get<std::string>(j, "after", ""), s.evidence = get<std::string>(j, "evidence", "");
    return s;
}

NetworkChange network_step_from_json(const json& j) {
    NetworkChange s{step_from_json(j), get(j, "sites", std::vector<std::string>{}), {}};
    s.step.kind = "neural";
    for (const json& g : j.value("guards", json::array())) {
        if (!asks_measure(g.at("guard").get<std::string>())) continue;
        json answer = get(g, "evidence", json::object());  // what was scored, with the verdict next to it
        if (answer.contains("kept")) answer["ratio"] = answer["kept"];
        answer["allowed"] = g.at("allowed"), answer["why"] = g.value("why", "");
        s.guard = guard_from_json(answer);
    }
    return s;
}

void read_sequences(const fs::path& path, FinishedRun& run) {
    std::map<std::string, SiteResult*> by_name;
    for (SiteResult& s : run.sites) by_name[s.name] = &s;
    json file = parse(path, read_file(path));
    for (const json& step : file.value("network", json::object()).value("steps", json::array())) {
        if (!get(step, "neural", false)) continue;
        run.steps.push_back(network_step_from_json(step));
        for (const std::string& site : run.steps.back().sites)
            if (const auto it = by_name.find(site); it != by_name.end()) it->second->proof.push_back(run.steps.back().step);
    }
    for (const json& entry : file.at("sites")) {
        auto it = by_name.find(entry.at("name").get<std::string>());
        if (it == by_name.end()) continue;
        it->second->key = get<std::string>(entry, "key", "");
        for (const json& step : entry.at("steps")) it->second->proof.push_back(step_from_json(step));
    }
}

void read_evidence(const fs::path& path, FinishedRun& run) {
    int line = 0;
    for (const std::string& text : split(read_file(path), '\n')) {
        ++line;
        if (text.empty()) continue;
        json j = parse(path, text, line);
        if (!j.is_object()) throw UserError(fmt::format("'{}', line {}: expected an object, a verdict of the guard", path.string(), line));
        Evidence e;
        e.key = get<std::string>(j, "key", ""), e.oracle = get<std::string>(j, "oracle", ""), e.site = get<std::string>(j, "site", "");
        if (const auto sites = j.find("sites"); sites != j.end() && sites->is_object() && !sites->empty())  // a question may be about many
            e.site = sites->begin().key() + (sites->size() == 1 ? "" : fmt::format(" and {} more", sites->size() - 1));
        e.domain = j.contains("domain") && !j["domain"].is_string() ? j["domain"].dump() : get<std::string>(j, "domain", "");
        e.why = get<std::string>(j, "why", ""), e.allowed = get(j, "allowed", false);
        e.ratio = get(j, "ratio", get(j, "kept", 1.0)), e.low = get(j, "low", e.ratio), e.high = get(j, "high", e.ratio), e.seconds = get(j, "seconds", 0.0);
        run.evidence.push_back(std::move(e));
    }
}

// Version 0.1 wrote the share of capacity alone, of which a half represents one point.
double points_of(const json& point) {
    if (point.contains("loss")) return point.at("loss").at("points").get<double>();
    return -std::log2(std::max(1e-9, point.at("capacity").get<double>()));
}

Whole whole_from_json(const json& j) { return {latency_from_json(j), get<std::int64_t>(j, "parameters", 0), get<std::int64_t>(j, "macs", 0)}; }

void read_result(const json& j, FinishedRun& run) {
    run.model = j.at("model").get<std::string>();
    run.architecture = get<std::string>(j, "class", ""), run.target = get<std::string>(j, "target", ""), run.rules = get<std::string>(j, "rules", "");
    run.returned = get<std::string>(j, "returned", "optimized"), run.why = get<std::string>(j, "why", "");
    run.date = get<std::string>(j, "date", ""), run.version = get<std::string>(j, "version", "");
    run.sample = get(j, "sample", false);
    run.batch = get<std::int64_t>(j, "batch", 1), run.seed = get<std::int64_t>(j, "seed", 0);
    run.original = whole_from_json(j.at("original")), run.optimized = whole_from_json(j.at("optimized"));
    run.speedup = j.at("speedup").get<double>();
    run.speedup_low = get(j, "speedup_low", run.speedup), run.speedup_high = get(j, "speedup_high", run.speedup);
    if (j.contains("guard")) run.guard = guard_from_json(j["guard"]);
    const json errors = get(j, "errors", json::object());
    for (const json& s : j.at("sites")) {
        run.sites.push_back(site_from_json(s));
        if (!errors.contains(run.sites.back().name)) continue;
        const json& error = errors.at(run.sites.back().name);
        run.sites.back().error_bound = error.at("bound").get<double>();
        if (error.at("measured").is_number()) run.sites.back().error_measured = error.at("measured").get<double>();
    }
    for (const json& p : j.value("pareto", json::array()))
        run.pareto.push_back({p.at("latency_ms").get<double>(), points_of(p), get<std::int64_t>(p, "parameters", 0), get<std::int64_t>(p, "macs", 0),
                              get(p, "chosen", false), get(p, "measured", false), get(p, "allowed", true)});
    run.configurations = get<std::int64_t>(j, "configurations", 0), run.rejected = get<std::int64_t>(j, "rejected", 0);
    if (j.contains("rules_fired")) run.rules_fired = j["rules_fired"].get<std::map<std::string, std::int64_t>>();
    json seconds = j.value("seconds", json::object());
    std::vector<std::string> order{"read", "importance", "rounding", "networks", "tune", "confirm", "targets", "write", "round"};
    for (auto& [stage, value] : seconds.items())
        if (stage != "total" && std::find(order.begin(), order.end(), stage) == order.end()) order.push_back(stage);
    for (const std::string& stage : order)
        if (seconds.contains(stage)) run.stages.emplace_back(stage, seconds[stage].get<double>());
    for (const auto& [stage, value] : run.stages) run.total_seconds += value;
    run.total_seconds = get(seconds, "total", run.total_seconds);
}

}  // namespace

Latency latency_from_json(const json& j) {
    Latency l;
    l.median_ms = j.at("median_ms").get<double>();
    l.iqr_ms = get(j, "iqr_ms", 0.0), l.n = get(j, "n", 0), l.target = get<std::string>(j, "target", "");
    l.measured = get(j, "measured", false), l.disturbed = get(j, "disturbed", false);
    return l;
}

json to_json(const Latency& l) {
    return {{"median_ms", l.median_ms}, {"iqr_ms", l.iqr_ms}, {"n", l.n}, {"target", l.target}, {"measured", l.measured}, {"disturbed", l.disturbed}};
}

std::string StepTaken::text() const {
    std::string out = rule;
    for (const auto& [name, value] : with) out += fmt::format(" {}={}", name, value);
    if (part) out += fmt::format(" (part {})", *part);
    return out;
}

std::string NetworkChange::title() const {
    if (sites.empty()) return step.text();
    return step.text() + " at " + sites.front() + (sites.size() == 1 ? "" : fmt::format(" and {} more", sites.size() - 1));
}

std::string StepTaken::words() const {
    auto of = [&](const char* name) {
        auto it = with.find(name);
        return it == with.end() ? std::string("?") : it->second;
    };
    const std::string a = of("?a"), b = of("?b"), k = of("?k"), where = part ? fmt::format(" in part {}", *part) : "";
    if (rule == "group-axes") return fmt::format("group {} with {} in {} blocks{}", a, b, of("?g"), where);
    if (rule == "bottleneck-axis") {
        std::string back = with.contains("restore") ? fmt::format(", and {} what is missing", of("restore") == "zero"     ? "put zeros for"
                                                                                              : of("restore") == "repeat" ? "repeat it for"
                                                                                                                          : of("restore") + " for")
                                                    : "";
        return fmt::format("keep one part in {} of {}{}{}", k, a, where, back);
    }
    if (rule == "drop-branch") return "leave a branch out";
    if (rule == "drop-growth") return "leave a branch out, with the channels that it adds";
    if (rule == "narrow-stream") return fmt::format("keep {} channels of a residual stream", of("?w"));
    if (rule == "narrow-branch") return fmt::format("keep {} of the channels that a branch adds", of("?w"));
    if (rule == "narrow-width") return fmt::format("keep {} channels between two layers", of("?w"));
    if (rule == "cut-domain") return fmt::format("cut {} in two at {}", a, k);
    if (rule == "split-loop") return fmt::format("split {} into runs of {}{}", a, k, where);
    if (rule == "swap-loops") return fmt::format("swap the loops over {} and {}{}", a, b, where);
    if (rule == "fuse-loops") return fmt::format("fuse the loops over {} and {}{}", a, b, where);
    return text();
}

int FinishedRun::changed_sites() const {
    return static_cast<int>(std::count_if(sites.begin(), sites.end(), [](const SiteResult& s) { return s.changed(); }));
}

FinishedRun read_run(const fs::path& folder) {
    finish_update(folder);
    FinishedRun run;
    run.folder = folder;
    fs::path result = folder / "result.json";
    if (!fs::exists(result))
        throw UserError(Diagnostic{
            fmt::format("'{}' is not the folder of a run: it has no result.json", folder.string()), {}, "make one with 'loopegg optimize MODEL --out DIR'"});
    run.result = parse(result, read_file(result));
    reading(result, [&] { read_result(run.result, run); });
    if (fs::path path = folder / "sequences.json"; fs::exists(path)) reading(path, [&] { read_sequences(path, run); });
    if (fs::path path = folder / "evidence.jsonl"; fs::exists(path)) reading(path, [&] { read_evidence(path, run); });
    return run;
}

}  // namespace loopegg
