#include "backends/measure/network_measure.hpp"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "backends/measure/latency_store.hpp"
#include "backends/measure/roofline.hpp"
#include "backends/measure/sensors.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "backends/measure/worker_process.hpp"
#include "backends/network/network.hpp"
#include "backends/network/network_plan.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "graph/load.hpp"
#include "graph/npy.hpp"

namespace loopegg {
namespace {

constexpr std::uintmax_t npy_header_bytes = 1 << 16;  // of a .npy file, and more

Latency timed(const std::filesystem::path& folder, int rounds, Progress& progress) {
    const std::filesystem::path all[]{folder};
    Progress::Inner stage(&progress, "time", rounds);
    const Measured m = measure_networks(all, rounds)[0];
    stage.finish({});
    if (!m.latency) throw UserError("the network could not be timed: " + m.why);
    return *m.latency;
}

// A board runs kernel by kernel, so the time of a network is the sum of its steps.
NetworkLatency sum_on_board(const Term& steps, const Target& target, Progress& progress) {
    MeasurerOptions options;
    Progress::Inner stage(&progress, "measure on " + target.name, static_cast<std::int64_t>(steps.size()));
    options.progress = [&](std::size_t done, std::size_t) { progress.advance(static_cast<std::int64_t>(done)); };
    options.note = [&](const std::string& line) { progress.note(line); };
    TvmMeasurer measurer(options);
    const Measured sum = sum_of_steps(steps, target, measurer);
    if (!sum.latency) throw UserError("the network could not be timed on " + target.name + ": " + sum.why);
    stage.finish({});
    return {*sum.latency, static_cast<int>(measurer.counts().compiled), static_cast<int>(measurer.counts().timed), sum.machine};
}

}  // namespace

Term network_term(const Graph& graph, const Schedules& schedules, const Target& target) {
    return network_term(plan_without_constants(graph, schedules, target));
}

Term network_term(const NetworkPlan& plan) {
    std::vector<Term> nests;
    for (const NetworkPlan::Step& s : plan.steps)
        if (s.nest) nests.push_back(s.nest->nest);
    return Term("network", std::move(nests));
}

Measured sum_of_steps(const Term& network, const Target& target, Measurer& measurer) {
    std::vector<Candidate> candidates;
    for (const Term& nest : network.children()) candidates.push_back({nest, target.name});
    Measured sum{Latency{0, 0, 0, target.name, true, false}, ""};
    for (const Measured& m : measurer.measure(candidates)) {
        if (!m.latency) return m;
        Latency& l = *sum.latency;
        l.median_ms += m.latency->median_ms, l.iqr_ms += m.latency->iqr_ms, l.n = l.n ? std::min(l.n, m.latency->n) : m.latency->n;
        l.measured = l.measured && m.latency->measured, l.disturbed = l.disturbed || m.latency->disturbed;
        if (!m.machine.empty()) sum.machine = m.machine;  // the last one represents all, because boards of a target are equal
    }
    return sum;
}

Latency estimate_network(const Graph& graph, const Schedules& schedules, const Target& target) {
    Latency sum{0, 0, 0, target.name, false, false};
    const Term network = network_term(graph, schedules, target);  // named, because its children live as long as it does
    for (const Term& nest : network.children()) sum.median_ms += estimate_latency(nest, target).median_ms;
    return sum;
}

NetworkLatency measure_model(const std::string& model, const std::string& target_name, std::uint64_t seed, int rounds, Progress& progress) {
    if (std::filesystem::is_directory(model)) {
        require_whole(model, "loopegg compile MODEL --out " + model);
        return {timed(model, rounds, progress), 0, rounds * 3};
    }
    const Target target = find_target(target_name);
    const Model m = load_model(model, seed);
    const Term steps = network_term(m.graph, {}, target);
    if (target.on_board()) return sum_on_board(steps, target, progress);
    if (target.reach != Reach::here) return {estimate_network(m.graph, {}, target), 0, 0};
    LatencyStore store(default_store());
    const Hash128 key = latency_key(target, steps);
    const auto known = known_or_claimed(store, key, target.name, "network " + m.graph.name, 300, [&](const std::string& line) { progress.note(line); });
    if (known && known->latency) return {*known->latency, 0, 0};
    ScratchFile folder(".network");
    NetworkLatency result;
    try {
        result.compiled = compile_network({m.graph, m.weights, {}}, target, folder.path(), &progress).kernels;
        result.latency = timed(folder.path(), rounds, progress);
        result.timed = result.latency.n;
    } catch (...) {
        std::filesystem::remove_all(folder.path());
        store.release(key);
        throw;
    }
    std::filesystem::remove_all(folder.path());
    store.put(key, target.name, "network " + m.graph.name, {result.latency, ""});
    return result;
}

std::optional<NetworkProfile> profile_network(const std::filesystem::path& folder, double seconds, std::string& why) {
    WorkerLimits limits = network_limits();
    limits.seconds = 60 + seconds;
    WorkerProcess worker(loopegg_program(), limits);
    auto ask = [&](nlohmann::json request) -> std::optional<nlohmann::json> {
        nlohmann::json reply = worker.ask(request);
        if (reply["ok"].get<bool>()) return reply;
        why = reply.value("why", "failed");
        return {};
    };
    if (!ask({{"op", "open"}, {"id", 0}, {"folder", folder.string()}})) return {};
    const Sensors sensors;
    const auto before = sensors.energy();
    const auto reply = ask({{"op", "profile"}, {"id", 0}, {"seconds", seconds}});
    if (!reply) return {};
    const auto joules = sensors.joules(before, sensors.energy());
    std::vector<double> ms = (*reply)["ms"].get<std::vector<double>>();
    double sum = 0;
    for (double v : ms) sum += v;
    std::sort(ms.begin(), ms.end());
    auto rank = [&](double q) { return ms[std::min(ms.size() - 1, static_cast<std::size_t>(q * static_cast<double>(ms.size())))]; };
    NetworkProfile p;
    p.calls = static_cast<int>(ms.size());
    p.p50_ms = rank(0.5), p.p99_ms = rank(0.99);
    p.throughput_per_s = static_cast<double>((*reply)["batch"].get<std::int64_t>()) * static_cast<double>(ms.size()) / (sum / 1000);
    p.peak_memory_mb = (*reply)["peak_kb"].get<double>() / 1024;
    if (joules) p.energy_j = *joules / static_cast<double>(ms.size());
    p.temperature_c = sensors.temperature();
    return p;
}

std::vector<Tensor> run_confined(const std::filesystem::path& folder, std::span<const Tensor> inputs) {
    const NetworkPorts ports = read_ports(folder);
    std::vector<std::unique_ptr<ScratchFile>> files;
    std::vector<std::string> in, out;
    for (const Tensor& t : inputs) {
        files.push_back(std::make_unique<ScratchFile>(".npy"));
        in.push_back(files.back()->path().string());
        write_scratch(in.back(), write_npy(t));
    }
    for (std::size_t i = 0; i < ports.outputs.size(); ++i) files.push_back(std::make_unique<ScratchFile>(".npy")), out.push_back(files.back()->path().string());
    WorkerProcess worker(loopegg_program(), network_limits());
    auto ask = [&](const nlohmann::json& request) {
        const auto reply = worker.ask(request);
        if (!reply["ok"].get<bool>())
            throw UserError(Diagnostic{"the network in '" + folder.string() + "' cannot be run: " + reply.value("why", "it failed"),
                                       {},
                                       "recompile it for this machine: loopegg compile MODEL --out DIR"});
    };
    ask({{"op", "open"}, {"id", 0}, {"folder", std::filesystem::absolute(folder).string()}});
    ask({{"op", "infer"}, {"id", 0}, {"inputs", in}, {"outputs", out}});
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < out.size(); ++i) {
        results.push_back(
            parse_npy(out[i], read_file(out[i], npy_header_bytes + sizeof(float) * static_cast<std::uintmax_t>(element_count(ports.outputs[i].shape)))));
        if (results.back().shape != ports.outputs[i].shape)
            throw UserError("the network in '" + folder.string() + "' gives an output of another shape than its network.json says");
    }
    return results;
}

}  // namespace loopegg
