// Makes result.json: what a run tells about itself.
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/text.hpp"
#include "graph/architecture.hpp"
#include "graph/flops.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/term/value.hpp"
#include "optimize/dropped_site.hpp"
#include "optimize/guard_queue.hpp"
#include "optimize/judge_networks.hpp"
#include "optimize/named_sequences.hpp"
#include "optimize/pseudo.hpp"
#include "optimize/stages.hpp"
#include "version.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

json network_json(const NetworkRecord& network, const Graph& graph) {
    json j = latency_json(network.time);
    j["parameters"] = parameters(graph), j["macs"] = macs(graph);
    if (!network.rounding.is_null()) j["rounding"] = network.rounding;
    return j;
}

json profile_json(const NetworkRecord& n) {
    json j{{"compile_seconds", n.files.seconds},
           {"activations_mb", static_cast<double>(n.files.arena_bytes) / 1e6},
           {"weights_mb", static_cast<double>(n.files.weight_bytes) / 1e6}};
    for (const char* key : {"throughput_per_s", "p50_ms", "p99_ms", "calls", "peak_memory_mb", "energy_j", "temperature_c"}) j[key] = nullptr;
    if (!n.profile) return j;
    const NetworkProfile& p = *n.profile;
    j.update({{"throughput_per_s", p.throughput_per_s}, {"p50_ms", p.p50_ms}, {"p99_ms", p.p99_ms}, {"calls", p.calls}, {"peak_memory_mb", p.peak_memory_mb}});
    if (p.energy_j) j["energy_j"] = *p.energy_j;
    if (p.temperature_c) j["temperature_c"] = *p.temperature_c;
    return j;
}

// One record per run: the figures of the returned network and of the original, and what the run itself took.
json metrics_json(const OptimizeRequest& request, const NetworkRecord& original, const NetworkRecord& returned) {
    json j = profile_json(returned);
    j["original"] = profile_json(original);
    j["objective"] = request.objective;
    rusage own{}, children{};
    ::getrusage(RUSAGE_SELF, &own), ::getrusage(RUSAGE_CHILDREN, &children);
    j["run_peak_memory_mb"] = static_cast<double>(std::max(own.ru_maxrss, children.ru_maxrss)) / 1024;
    return j;
}

std::string cpu_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("model name") || line.starts_with("CPU part")) return line.substr(line.find(':') + 2);
    return "unknown";
}

json machine_json() {
    utsname name{};
    ::uname(&name);
    const double gib = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE)) / (1024.0 * 1024 * 1024);
    return {{"cpu", cpu_name()}, {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)}, {"arch", name.machine}, {"memory_gib", std::round(gib * 10) / 10}};
}

std::vector<std::string> step_lines(const Variant& v) {
    std::vector<std::string> lines;
    for (const DerivationStep& s : v.steps) {
        std::string line = s.rule;
        for (const auto& [name, value] : s.with)
            if (const std::string text = to_string(value); text.size() <= 24 && name.size() <= 4) line += fmt::format(" {}={}", name, text);
        lines.push_back(std::move(line));
    }
    return lines;
}

json verdict_json(const Verdict& v) {
    json j{{"allowed", v.allowed}, {"why", v.why}, {"ratio", kept_share(v)}};
    for (const char* key : {"low", "high", "threshold", "seeds"})
        if (v.evidence.is_object() && v.evidence.contains(key)) j[key] = v.evidence[key];
    if (v.evidence.is_object() && v.evidence.contains("capacity")) j["threshold"] = v.evidence["capacity"];  // the least kept share that is allowed
    if (j.contains("seeds") && j["seeds"].is_array()) j["seeds"] = j["seeds"].size();
    if (v.evidence.is_object() && v.evidence.contains("together"))
        j["together"] = {{"sites", v.evidence["together"]["sites"]}, {"ratio", v.evidence["together"]["kept"]}};
    return j;
}

// The network that the run returns.
struct Returned {
    const Graph& graph;
    const std::vector<std::size_t>& variant;   // by site
    bool original;                             // it is the network that was read
    const std::map<std::string, Term>& nests;  // by site, what runs
};

json site_json(std::size_t s, const Input& input, const Discovery& found, const Tuning& tuning, const Returned& returned) {
    const std::vector<std::size_t>& variant = returned.variant;
    const Site& site = input.sites.all[s];
    const Variant& v = found.variants[variant[s]];
    const TunedNest &before = tuning.best[site.kind], &after = tuning.best[variant[s]];
    json j{{"name", site.name},
           {"op", site.op},
           {"shape", site.shape},
           {"statement", to_string(site.statement)},
           {"variant", domain_text(v.domain)},
           {"effect", effect_words(v.domain)},
           {"sequence", sequence_name(input.sites, found, variant, s)},
           {"steps", step_lines(v)},
           {"original_latency", latency_json(before.best)},
           {"latency", latency_json(after.best)},
           {"original_macs", site.macs},
           {"macs", v.macs},
           {"original_parameters", site.parameters},
           {"parameters", v.parameters}};
    if (before.nest) j["nest_before"] = to_string(bare(before.nest)), j["pseudo_before"] = pseudo(before.nest);
    const auto runs = returned.nests.find(site.name);
    const bool known = runs != returned.nests.end() && !(input.read && returned.original);  // the sites are those of the network that the run tried
    if (const Term nest = known ? runs->second : after.nest) j["nest_after"] = to_string(bare(nest)), j["pseudo_after"] = pseudo(nest);
    if (const auto second = tuning.restoring.find(variant[s]); second != tuning.restoring.end()) {
        const TunedNest& t = second->second;
        j["restoring"] = {{"name", restoring_node(returned.graph, site.name).name},
                          {"latency", latency_json(t.best)},
                          {"nest", to_string(bare(t.nest))},
                          {"pseudo", pseudo(t.nest)}};
    }
    if (const Admission* a = admission_of(input.sites, found, variant, s)) {
        j["guard"] = verdict_json(a->verdict);
        if (a->reader) j["unread_by"] = input.sites.all[*a->reader].name;
    }
    return j;
}

// The sites in the order of the network that was read. Where rules over several sites made another network from it, each site is listed with its size in
// the network that was read, and sites that were dropped are listed too.
json sites_json(const Input& input, const Discovery& found, const Tuning& tuning, const Returned& returned) {
    std::map<std::string, json> by_name;
    std::map<std::string, const Site*> left;
    for (std::size_t s = 0; s < input.sites.all.size(); ++s) {
        const Site& site = input.sites.all[s];
        by_name[site.name] = site_json(s, input, found, tuning, returned), left[site.name] = &site;
    }
    json sites = json::array();
    for (const Site& was : input.as_read().sites.all) {
        const auto now = by_name.find(was.name);
        if (now == by_name.end()) {
            sites.push_back(dropped_site(was));
            continue;
        }
        json& j = now->second;
        if (input.read && !returned.original) {
            const bool narrower = j["statement"] != to_string(was.statement);
            j["original_macs"] = was.macs, j["original_parameters"] = was.parameters, j["original_statement"] = to_string(was.statement);
            if (narrower && j["sequence"] == "dense") j["sequence"] = "narrower", j["effect"] = narrower_words(left.at(was.name)->statement, was.statement);
        }
        sites.push_back(std::move(j));
    }
    return sites;
}

json front_json(const Selection& selection) {
    json front = json::array();
    for (const Chosen& point : selection.front) {
        const NetworkChoice& c = point.choice;
        std::size_t changed = 0;
        for (std::size_t s = 0; s < c.picked.size(); ++s) changed += c.picked[s] != 0;
        front.push_back({{"latency_ms", c.latency_ms},
                         {"capacity", kept_share(point.verdict)},
                         {"summed_capacity", std::exp(-c.capacity_cost)},
                         {"allowed", point.verdict.allowed},
                         {"parameters", c.parameters},
                         {"macs", macs(point.graph)},
                         {"sites_changed", changed},
                         {"measured", false},
                         {"chosen", c.picked == selection.chosen.choice.picked}});
    }
    return front;
}

}  // namespace

std::string pseudo(const Term& nest) {
    if (nest.is("prepare", 2)) {  // nests in a row
        std::string all;
        for (const Term& each : nests_of(nest[1])) all += (all.empty() ? "" : "then\n") + pseudo(each);
        return all;
    }
    return to_string(resolve(nest), statement_of(nest_parts(nest).statement));
}

json latency_json(const Measured& m) {
    if (!m.latency) return {{"median_ms", nullptr}, {"why", m.why}, {"measured", false}};
    const Latency& l = *m.latency;
    return {{"median_ms", l.median_ms}, {"iqr_ms", l.iqr_ms}, {"n", l.n}, {"target", l.target}, {"measured", l.measured}, {"disturbed", l.disturbed}};
}

json result_of(const OptimizeRequest& request, const Outcome& outcome) {
    const auto& [input, found, tuning, selection, confirmed] = outcome;
    const std::vector<std::size_t> variant = returned_variants(input, selection, confirmed);
    const Input& read = input.as_read();
    const Graph& graph = confirmed.keep_original ? read.graph : selection.chosen.graph;
    const NetworkRecord& returned = confirmed.keep_original ? confirmed.original : confirmed.optimized;
    const Measured &original = confirmed.original.time, &optimized = returned.time;
    const Architecture architecture = classify_architecture(read.graph);
    json r{{"loopegg", 1},
           {"model", input.graph.name},
           {"class", to_string(architecture.kind)},
           {"class_why", architecture.why},
           {"target", request.target},
           {"batch", request.batch},
           {"seed", request.seed},
           {"rules", request.rules},
           {"machine", machine_json()},
           {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
           {"version", version},
           {"original", network_json(confirmed.original, read.graph)},
           {"optimized", network_json(returned, graph)},
           {"returned", confirmed.keep_original ? "original" : "optimized"}};
    if (original.latency && optimized.latency) {
        const Latency &a = *original.latency, &b = *optimized.latency;
        r["speedup"] = a.median_ms / b.median_ms;
        r["speedup_low"] = std::max(0.0, a.median_ms - a.iqr_ms / 2) / (b.median_ms + b.iqr_ms / 2);
        r["speedup_high"] = (a.median_ms + a.iqr_ms / 2) / std::max(1e-9, b.median_ms - b.iqr_ms / 2);
        r["why"] = confirmed.keep_original
                       ? confirmed.why
                       : fmt::format("the network is {:.2f}x faster on {}{}: {:.3f} ms instead of {:.3f} ms, and the guard {} allows it ({})",
                                     a.median_ms / b.median_ms, request.target, b.measured ? "" : " (estimated)", b.median_ms, a.median_ms, request.guard,
                                     selection.chosen.verdict.why);
    } else {
        r["why"] = confirmed.why;
    }
    r["guard"] = verdict_json(confirmed.keep_original ? Verdict{true, "the original network", {}} : selection.chosen.verdict);
    r["guard"]["name"] = request.guard;
    const ExpectedLoss loss = confirmed.keep_original ? ExpectedLoss{} : loss_of(selection.chosen.verdict);
    r["guard"]["loss"] = {{"points", loss.points}, {"low", loss.low}, {"high", loss.high}};
    const NetworkRecord& record = confirmed.keep_original ? confirmed.original : confirmed.optimized;
    r["sites"] = sites_json(input, found, tuning, {graph, variant, confirmed.keep_original, record.nests});
    r["pareto"] = front_json(selection), r["calibration"] = selection.calibration;
    r["configurations"] = found.configurations, r["rejected"] = found.rejected, r["refused"] = found.refused, r["backed_off"] = selection.backed_off;
    r["rules_fired"] = found.rules_fired, r["rules_asked"] = found.rules_asked;
    r["discover"] = {{"stop", found.stop},
                     {"nodes", found.nodes},
                     {"classes", found.classes},
                     {"variants", found.variants.size() - input.sites.kinds.size()},
                     {"effects", effects_json(found, tuning)}};
    r["kernels"] = {{"tried", tuning.compiled}, {"failed", tuning.failed}};
    r["metrics"] = metrics_json(request, confirmed.original, returned);
    return r;
}

json effects_json(const Discovery& found, const Tuning& tuning) {
    json effects = json::object();
    const auto count = [&](const Variant& v, const char* what) {
        json& e = effects[v.effect];
        if (e.is_null()) e = {{"judged", 0}, {"admitted", 0}, {"timed", 0}};
        e[what] = e[what].get<int>() + 1;
    };
    for (const Admission& a : found.admissions) {
        if (a.reader) continue;  // the guard was not asked
        count(found.variants[a.variant], "judged");
        if (a.verdict.allowed) count(found.variants[a.variant], "admitted");
    }
    for (std::size_t v = 0; v < found.variants.size(); ++v)
        if (!found.variants[v].domain.whole() && tuning.best[v].best.latency) count(found.variants[v], "timed");
    return effects;
}

void add_class(json& result, const ClassRules& rules) {
    result["rules_class"] = rules.name.empty() ? "all" : rules.name;
    result["rules_pruned"] = json::array();
    for (const PrunedRule& p : rules.pruned) result["rules_pruned"].push_back({{"rule", p.rule}, {"why", p.why}});
}

}  // namespace loopegg
