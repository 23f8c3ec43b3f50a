#include "backends/measure/sensors.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace loopegg {
namespace fs = std::filesystem;
namespace {

std::optional<double> number_in_file(const fs::path& file) {
    std::ifstream in(file);
    double value = 0;
    return in >> value ? std::optional(value) : std::nullopt;
}

std::string word_in(const fs::path& file) {
    std::ifstream in(file);
    std::string word;
    in >> word;
    return word;
}

template <class F>
void each_in(const fs::path& folder, F&& visit) {
    std::error_code ignored;
    for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) visit(it->path());
}

}  // namespace

std::map<std::string, double> Sensors::energy() const {
    std::map<std::string, double> joules;
    each_in(powercap, [&](const fs::path& zone) {
        // "intel-rapl:0" is a package; "intel-rapl:0:1" is a part of it, and only memory is not counted in the package.
        const std::string name = zone.filename().string();
        const bool part = std::count(name.begin(), name.end(), ':') > 1;
        if (part && word_in(zone / "name") != "dram") return;
        if (auto micro = number_in_file(zone / "energy_uj")) joules[name] = *micro * 1e-6;
    });
    return joules;
}

std::optional<double> Sensors::joules(const std::map<std::string, double>& before, const std::map<std::string, double>& after) const {
    double sum = 0;
    bool any = false;
    for (const auto& [zone, from] : before) {
        auto it = after.find(zone);
        if (it == after.end()) continue;
        double used = it->second - from;
        if (used < 0) used += number_in_file(powercap / zone / "max_energy_range_uj").value_or(0) * 1e-6;
        sum += used, any = true;
    }
    return any ? std::optional(sum) : std::nullopt;
}

std::optional<double> Sensors::temperature() const {
    std::optional<double> hottest;
    auto offer = [&](std::optional<double> milli) {
        if (milli && *milli > 0 && *milli < 200'000) hottest = std::max(hottest.value_or(0), *milli / 1000);
    };
    each_in(hwmon, [&](const fs::path& chip) {
        const std::string name = word_in(chip / "name");
        if (name != "coretemp" && name != "k10temp" && name != "zenpower" && name != "cpu_thermal") return;
        each_in(chip, [&](const fs::path& file) {
            const std::string f = file.filename().string();
            if (f.starts_with("temp") && f.ends_with("_input")) offer(number_in_file(file));
        });
    });
    if (hottest) return hottest;
    each_in(thermal, [&](const fs::path& zone) {
        const std::string type = word_in(zone / "type");
        if (type.find("cpu") != type.npos || type.find("pkg") != type.npos || type == "acpitz") offer(number_in_file(zone / "temp"));
    });
    return hottest;
}

std::string Sensors::governor() const {
    std::set<std::string> all;
    each_in(cpu, [&](const fs::path& folder) {
        const std::string name = folder.filename().string();
        if (!name.starts_with("cpu") || name.find_first_not_of("0123456789", 3) != name.npos) return;
        if (const std::string word = word_in(folder / "cpufreq" / "scaling_governor"); !word.empty()) all.insert(word);
    });
    std::string words;
    for (const std::string& word : all) words += (words.empty() ? "" : ", ") + word;
    return words;
}

void MachineLoad::look() {
    std::this_thread::sleep_for(std::chrono::microseconds(600));  // time for the helper threads of the last kernel to go to sleep
    std::ifstream in("/proc/stat");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("procs_running ")) {
            ++looks_;
            if (std::stoi(line.substr(14)) > 1) ++seen_;  // the caller is one of the running processes
            return;
        }
}

}  // namespace loopegg
