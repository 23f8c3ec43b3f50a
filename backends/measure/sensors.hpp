// What this machine tells about itself while something runs: energy and temperature, where it has such sensors and we may read them.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace loopegg {

struct Sensors {
    std::filesystem::path powercap = "/sys/class/powercap", hwmon = "/sys/class/hwmon", thermal = "/sys/class/thermal";

    // Joules since some fixed moment, by domain (RAPL packages; DRAM where it is a domain of its own). Empty: nothing tells.
    std::map<std::string, double> energy() const;
    // Joules between two readings; counters that went around are followed. None where there are no counters.
    std::optional<double> joules(const std::map<std::string, double>& before, const std::map<std::string, double>& after) const;
    // The hottest processor sensor, in degrees Celsius.
    std::optional<double> temperature() const;
};

// "nvidia-smi", asked once about power (watts) and temperature of the first GPU. None where there is no such program or GPU.
struct GpuReading {
    double watts = 0, celsius = 0;
};
std::optional<GpuReading> read_gpu();

}  // namespace loopegg
