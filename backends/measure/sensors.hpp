// What this machine reports about itself while something runs: energy, temperature and clocks, where it has such sensors and we may read them.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace loopegg {

struct Sensors {
    std::filesystem::path powercap = "/sys/class/powercap", hwmon = "/sys/class/hwmon", thermal = "/sys/class/thermal", cpu = "/sys/devices/system/cpu";

    // Joules since some fixed moment, by domain (RAPL packages; DRAM where it is a domain of its own). Empty where the machine reports nothing.
    std::map<std::string, double> energy() const;
    // Joules between two readings, also where a counter overflowed. None where there are no counters.
    std::optional<double> joules(const std::map<std::string, double>& before, const std::map<std::string, double>& after) const;
    // The hottest processor sensor, in degrees Celsius.
    std::optional<double> temperature() const;
    // How clocks are chosen ("performance", "ondemand"); "" where it is unknown. Processors that differ are all named.
    std::string governor() const;
};

// Whether somebody else is using this machine, asked while our own processes rest.

// Looks now and then. The machine counts as busy when something else ran at half of the looks or more.
class MachineLoad {
public:
    void look();  // call it when no process of ours but the caller should be running
    bool busy() const { return looks_ > 0 && 2 * seen_ >= looks_; }

private:
    int looks_ = 0, seen_ = 0;
};

}  // namespace loopegg
