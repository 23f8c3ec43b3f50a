#include "backends/measure/network_profile.hpp"

#include <algorithm>

#include "backends/measure/sensors.hpp"
#include "backends/measure/worker_process.hpp"

namespace loopegg {

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

}  // namespace loopegg
