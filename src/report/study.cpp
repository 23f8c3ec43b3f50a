#include "report/study.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "report/words.hpp"

namespace loopegg {
using nlohmann::json;
namespace {

std::string parameters_of(const StepTaken& step) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : step.with) parts.push_back(name + "=" + value);
    return join(parts, " ");
}

StudySite site_row(const FinishedRun& run, std::size_t index) {
    const SiteResult& s = run.sites[index];
    StudySite row;
    row.run = run.folder.filename().empty() ? run.folder.parent_path().filename().string() : run.folder.filename().string();
    row.model = run.model, row.architecture = run.architecture, row.target = run.target, row.seed = run.seed;
    row.site = s.name, row.op = s.op, row.shape = human_shape(s.shape), row.label = label_of(s), row.key = s.key,
    row.fame = s.changed() ? fame_of(s.sequence) : Fame::dense;
    row.depth = std::min(2, static_cast<int>(index * 3 / std::max<std::size_t>(1, run.sites.size())));
    row.before_ms = s.original_latency.median_ms, row.after_ms = s.latency.median_ms;
    row.macs_kept = s.original_macs > 0 ? static_cast<double>(s.macs) / static_cast<double>(s.original_macs) : 1;
    row.measured = s.latency.measured && s.original_latency.measured;
    return row;
}

std::vector<SequenceCount> count_sequences(const std::vector<StudySite>& sites) {
    struct Sum {
        SequenceCount count;
        double logs = 0, macs_kept = 0;
        int timed = 0;
    };
    std::map<std::string, Sum> sums;
    for (const StudySite& s : sites) {
        Sum& sum = sums[s.label];
        SequenceCount& c = sum.count;
        c.label = s.label, c.fame = s.fame, ++c.sites;
        ++c.by_target[s.target], ++c.by_model[s.model], ++c.by_shape[s.shape], ++c.by_depth[static_cast<std::size_t>(s.depth)];
        c.saved_ms += s.before_ms - s.after_ms;
        if (s.before_ms > 0 && s.after_ms > 0) sum.logs += std::log(s.before_ms / s.after_ms), ++sum.timed;
        sum.macs_kept += s.macs_kept;
        c.estimated += !s.measured;
    }
    std::vector<SequenceCount> out;
    for (auto& [label, sum] : sums) {
        if (sum.timed) sum.count.speedup = std::exp(sum.logs / sum.timed);
        sum.count.macs_kept = sum.macs_kept / sum.count.sites;
        out.push_back(std::move(sum.count));
    }
    std::stable_sort(out.begin(), out.end(), [](const SequenceCount& a, const SequenceCount& b) {
        if ((a.fame == Fame::dense) != (b.fame == Fame::dense)) return b.fame == Fame::dense;
        return a.sites > b.sites;
    });
    return out;
}

std::vector<StepCount> count_steps(const std::vector<FinishedRun>& runs) {
    std::map<std::string, StepCount> counts;
    for (const FinishedRun& run : runs)
        for (std::size_t i = 0; i < run.sites.size(); ++i)
            for (const StepTaken& step : run.sites[i].proof) {
                StepCount& c = counts[step.rule + " " + parameters_of(step)];
                c.rule = step.rule, c.kind = step.kind, c.parameters = parameters_of(step), ++c.times;
                ++c.by_depth[std::min<std::size_t>(2, i * 3 / run.sites.size())];
                ++c.by_target[run.target], ++c.by_shape[human_shape(run.sites[i].shape)];
            }
    std::vector<StepCount> out;
    for (auto& [key, count] : counts) out.push_back(std::move(count));
    std::stable_sort(out.begin(), out.end(), [](const StepCount& a, const StepCount& b) { return a.times > b.times; });
    return out;
}

std::string csv_line(const std::vector<std::string>& cells) {
    std::vector<std::string> safe;
    for (const std::string& c : cells) safe.push_back(escape_csv(c));
    return join(safe, ",") + "\n";
}

std::string optional_text(const std::optional<double>& value) { return value ? fmt::format("{:.4f}", *value) : ""; }

json optional_json(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

}  // namespace

Fame fame_of(const std::string& sequence) {
    static const std::set<std::string> known{"group", "depthwise", "bottleneck", "spatial-bottleneck", "mixed-group", "pointwise", "narrower", "dropped"};
    if (sequence.empty() || sequence == "dense") return Fame::dense;
    if (sequence == "S1" || sequence == "S2" || sequence == "S3") return Fame::paper;
    return known.contains(sequence) ? Fame::known : Fame::unnamed;
}

const char* to_string(Fame fame) {
    switch (fame) {
        case Fame::dense: return "dense";
        case Fame::paper: return "paper";
        case Fame::known: return "known";
        case Fame::unnamed: return "unnamed";
    }
    return "";
}

std::string label_of(const SiteResult& site) {
    if (!site.changed()) return "dense";
    if (site.sequence != "unnamed") return site.sequence;
    return site.key.empty() ? "unnamed" : site.key;
}

Study study_runs(const std::vector<FinishedRun>& runs) {
    Study study;
    std::set<std::string> targets, models;
    for (const FinishedRun& run : runs) {
        study.runs.push_back(run.folder.string());
        targets.insert(run.target), models.insert(run.model);
        study.sample = study.sample || run.sample;
        for (std::size_t i = 0; i < run.sites.size(); ++i) study.sites.push_back(site_row(run, i));
        for (const auto& [rule, times] : run.rules_fired) study.rules_fired[rule] += times;
    }
    study.targets.assign(targets.begin(), targets.end()), study.models.assign(models.begin(), models.end());
    study.sequences = count_sequences(study.sites);
    study.steps = count_steps(runs);
    for (const auto& [rule, times] : study.rules_fired)
        if (times == 0) study.never_fired.push_back(rule);
    for (const StudySite& s : study.sites)
        study.changed += s.fame != Fame::dense, study.paper += s.fame == Fame::paper, study.known += s.fame == Fame::known,
            study.unnamed += s.fame == Fame::unnamed;
    return study;
}

json to_json(const Study& study) {
    json sequences = json::array(), steps = json::array();
    for (const SequenceCount& c : study.sequences)
        sequences.push_back({{"sequence", c.label},
                             {"fame", to_string(c.fame)},
                             {"sites", c.sites},
                             {"by_target", c.by_target},
                             {"by_model", c.by_model},
                             {"by_shape", c.by_shape},
                             {"by_depth", c.by_depth},
                             {"saved_ms", c.saved_ms},
                             {"speedup", optional_json(c.speedup)},
                             {"macs_kept", c.macs_kept},
                             {"estimated", c.estimated}});
    for (const StepCount& c : study.steps)
        steps.push_back({{"rule", c.rule},
                         {"kind", c.kind},
                         {"parameters", c.parameters},
                         {"times", c.times},
                         {"by_depth", c.by_depth},
                         {"by_target", c.by_target},
                         {"by_shape", c.by_shape}});
    return {{"runs", study.runs},
            {"targets", study.targets},
            {"models", study.models},
            {"sites", study.sites.size()},
            {"changed", study.changed},
            {"paper", study.paper},
            {"known", study.known},
            {"unnamed", study.unnamed},
            {"sequences", sequences},
            {"steps", steps},
            {"rules_fired", study.rules_fired},
            {"never_fired", study.never_fired},
            {"sample", study.sample}};
}

std::string sites_csv(const Study& study) {
    std::string out = "run,model,class,target,seed,site,op,shape,depth,sequence,fame,steps,before_ms,after_ms,macs_kept,measured\n";
    for (const StudySite& s : study.sites)
        out += csv_line({s.run, s.model, s.architecture, s.target, std::to_string(s.seed), s.site, s.op, s.shape, std::to_string(s.depth), s.label,
                         to_string(s.fame), s.key, fmt::format("{}", s.before_ms), fmt::format("{}", s.after_ms), fmt::format("{:.4f}", s.macs_kept),
                         s.measured ? "true" : "false"});
    return out;
}

std::string sequences_csv(const Study& study) {
    std::string out = "sequence,fame,sites,early,middle,late,saved_ms,speedup,macs_kept,estimated\n";
    for (const SequenceCount& c : study.sequences)
        out += csv_line({c.label, to_string(c.fame), std::to_string(c.sites), std::to_string(c.by_depth[0]), std::to_string(c.by_depth[1]),
                         std::to_string(c.by_depth[2]), fmt::format("{:.5f}", c.saved_ms), optional_text(c.speedup), fmt::format("{:.4f}", c.macs_kept),
                         std::to_string(c.estimated)});
    return out;
}

std::string steps_csv(const Study& study) {
    std::string out = "rule,kind,parameters,times,early,middle,late\n";
    for (const StepCount& c : study.steps)
        out += csv_line({c.rule, c.kind, c.parameters, std::to_string(c.times), std::to_string(c.by_depth[0]), std::to_string(c.by_depth[1]),
                         std::to_string(c.by_depth[2])});
    return out;
}

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

// Why a network that was timed is not the answer, as far as its figures show.
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
