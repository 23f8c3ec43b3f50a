// Makes result.json: what a run reports about itself.
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "graph/architecture.hpp"
#include "graph/flops.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/term/value.hpp"
#include "optimize/answer/answer.hpp"
#include "optimize/answer/site_row.hpp"
#include "optimize/train/train_networks.hpp"
#include "rules/judged.hpp"
#include "version.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

json network_json(const NetworkRecord& network, const Graph& graph, std::int64_t batch) {
    json j = latency_json(network.time);
    if (network.time.latency) j["throughput_per_s"] = 1000 * static_cast<double>(batch) / network.time.latency->median_ms;
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

double kept_share(const Verdict& v) {
    return v.evidence.is_object() && v.evidence.contains("kept") && v.evidence["kept"].is_number() ? v.evidence["kept"].get<double>() : 1.0;
}

json verdict_json(const Verdict& v) {
    json j{{"allowed", v.allowed}, {"why", v.why}, {"ratio", kept_share(v)}};
    for (const char* key : {"measures", "seeds"})
        if (v.evidence.is_object() && v.evidence.contains(key)) j[key] = v.evidence[key];
    if (v.evidence.is_object() && v.evidence.contains("capacity")) j["threshold"] = v.evidence["capacity"];  // the least kept share that is allowed
    if (j.contains("seeds") && j["seeds"].is_array()) j["seeds"] = j["seeds"].size();
    return j;
}

// The sites in the order of the network that was read, each compared with what it was there.
json sites_json(const Answer& answer) {
    json sites = json::array();
    for (const Site& was : answer.run.read.network.sites.all) sites.push_back(site_json(answer, was));
    return sites;
}

json front_json_with_choice(const Answer& answer) {
    json front = front_json(answer.found);
    if (!answer.chosen || answer.confirmed.keep_original || !answer.confirmed.optimized.time.latency) return front;
    const FoundNetwork& chosen = *answer.chosen;
    front.push_back({{"latency_ms", answer.confirmed.optimized.time.latency->median_ms},
                     {"measured", answer.confirmed.optimized.time.latency->measured},
                     {"loss", {{"points", chosen.judged.loss.points}, {"low", chosen.judged.loss.low}, {"high", chosen.judged.loss.high}}},
                     {"capacity", kept_at_loss(chosen.judged.loss.points)},
                     {"allowed", true},
                     {"parameters", parameters(chosen.network.graph)},
                     {"macs", macs(chosen.network.graph)},
                     {"chosen", true}});
    return front;
}

json growth_json(const Growth& g) { return {{"stop", g.stop}, {"nodes", g.nodes}, {"classes", g.classes}, {"edges", g.edges}, {"seconds", g.seconds}}; }

void add_speedup(json& r, const Answer& answer, const Verdict& verdict) {
    const Confirmed& confirmed = answer.confirmed;
    const Measured &original = confirmed.original.time, &optimized = (confirmed.keep_original ? confirmed.original : confirmed.optimized).time;
    r["why"] = confirmed.why;
    if (!original.latency || !optimized.latency) return;
    const Latency &a = *original.latency, &b = *optimized.latency;
    r["speedup"] = a.median_ms / b.median_ms;
    r["speedup_low"] = std::max(0.0, a.median_ms - a.iqr_ms / 2) / (b.median_ms + b.iqr_ms / 2);
    r["speedup_high"] = (a.median_ms + a.iqr_ms / 2) / std::max(1e-9, b.median_ms - b.iqr_ms / 2);
    if (!confirmed.keep_original)
        r["why"] = fmt::format("the network is {:.2f}x faster on {}{}: {:.3f} ms instead of {:.3f} ms, and the guard {} allows it ({})",
                               a.median_ms / b.median_ms, answer.run.request.target, b.measured ? "" : " (estimated)", b.median_ms, a.median_ms,
                               measures_named(answer.run.conditions), verdict.why);
}

json accuracies_json(const Trained& trained) { return {{"accuracies", trained.accuracies}, {"accuracy", trained.mean()}}; }

// Of the returned network: its mean accuracy, and where nine of ten training runs of it are expected. The interval is around what the guard believes after all
// training runs. It is below the mean where the network was the luckiest of many.
json returned_json(const FoundNetwork& network, const Trained& original) {
    json j = accuracies_json(network.trained->runs);
    const ExpectedLoss &loss = network.judged.loss, &predicted = network.trained->predicted;
    j.update({{"name", network.name},
              {"low", original.mean() - loss.high},
              {"high", original.mean() - loss.low},
              {"lost", network.trained->lost},
              {"predicted", {{"points", predicted.points}, {"low", predicted.low}, {"high", predicted.high}}}});
    return j;
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

json result_of(const Answer& answer) {
    const auto& [run, found, chosen, original_tuning, tuning, confirmed] = answer;
    const OptimizeRequest& request = run.request;
    const Graph& read = run.read.network.graph;
    const Graph& graph = answer.returned().graph;
    const NetworkRecord& returned = confirmed.keep_original ? confirmed.original : confirmed.optimized;
    const Architecture architecture = classify_architecture(read);
    const Verdict verdict = confirmed.keep_original ? Verdict{true, "the original network", {}} : chosen->judged.verdict;
    const ExpectedLoss loss = confirmed.keep_original ? ExpectedLoss{} : chosen->judged.loss;
    json r{{"loopegg", 1},
           {"model", read.name},
           {"class", to_string(architecture.kind)},
           {"class_why", architecture.why},
           {"target", request.target},
           {"batch", request.batch},
           {"threads", run.target.gpu() ? json() : json(run.target.machine.cores)},
           {"seed", request.seed},
           {"rules", request.rules},
           {"strict_fp", request.strict_fp},
           {"unproved_rules", unproved_rules_in_use()},
           {"machine", machine_json()},
           {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
           {"version", version},
           {"original", network_json(confirmed.original, read, request.batch)},
           {"optimized", network_json(returned, graph, request.batch)},
           {"returned", confirmed.keep_original ? "original" : "optimized"}};
    add_speedup(r, answer, verdict);
    r["guard"] = verdict_json(verdict);
    r["guard"]["name"] = measures_named(run.conditions), r["guard"]["conditions"] = to_string(run.conditions);
    r["guard"]["loss"] = {{"points", loss.points}, {"low", loss.low}, {"high", loss.high}};
    if (!loss.unlike.empty()) r["guard"]["unlike"] = loss.unlike;
    r["sites"] = sites_json(answer);
    r["errors"] = errors_json(site_errors(returned.files.folder, graph));
    r["pareto"] = front_json_with_choice(answer), r["front_gap"] = found.gap, r["networks"] = networks_json(found);
    r["configurations"] = found.asked, r["rejected"] = found.rejected;
    r["rules_fired"] = found.growth.rules_fired, r["growth"] = growth_json(found.growth);
    r["kernels"] = {{"tried", original_tuning.compiled + (chosen ? tuning.compiled : 0)}, {"failed", original_tuning.failed + (chosen ? tuning.failed : 0)}};
    r["metrics"] = metrics_json(request, confirmed.original, returned);
    return r;
}

json training_json(const Answer& answer, const NetworkTraining& training) {
    const TrainingLedger& ledger = training.ledger();
    const Trained original = ledger.find(original_name)->trained();
    json failures = json::array();
    for (const LedgerNetwork& n : ledger.networks())
        for (const TrainingRun& r : n.runs)
            if (!r.outcome.accuracy) failures.push_back({{"name", n.name}, {"seed", r.seed}, {"why", r.outcome.why}});
    json j{{"command", training.request().command},
           {"budget", training.request().budget},
           {"runs", ledger.ended()},
           {"failures", failures},
           {"original", accuracies_json(original)},
           {"returned", nullptr}};
    if (!answer.confirmed.keep_original && answer.chosen->trained) j["returned"] = returned_json(*answer.chosen, original);
    return j;
}

}  // namespace loopegg
