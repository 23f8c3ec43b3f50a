#include "backends/target/machine_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "backends/runtime/loopegg_runtime.h"

namespace loopegg {
namespace {

double cache_kb(int index) {
    std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    double size = 0;
    char unit = 'K';
    if (!(in >> size)) return 0;
    in >> unit;
    return unit == 'M' ? size * 1024 : size;
}

}  // namespace

MachineFacts machine_facts() {
    MachineFacts f;
    utsname system{};
    if (uname(&system) == 0) f.architecture = system.machine;
    f.cores = loopeggrt_default_threads();
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        const auto colon = line.find(':');
        if (colon == line.npos) continue;
        const std::string value = colon + 2 < line.size() ? line.substr(colon + 2) : "";
        if (line.starts_with("cpu MHz") && f.ghz == 0)
            f.ghz = std::atof(value.c_str()) / 1000;
        else if (line.starts_with("model name") && f.cpu.empty())
            f.cpu = value;
        else if (line.starts_with("flags") && f.flags.empty())
            f.flags = value;
        else if (line.starts_with("CPU part"))
            f.part = value;
    }
    if (f.cpu.empty() && !f.part.empty()) f.cpu = "Arm part " + f.part;
    double khz = 0;
    if (f.ghz == 0 && std::ifstream("/sys/devices/system/cpu/cpu" + std::to_string(f.cores - 1) + "/cpufreq/cpuinfo_max_freq") >> khz) f.ghz = khz / 1e6;
    f.l1_kb = cache_kb(0), f.l2_kb = cache_kb(2), f.l3_kb = cache_kb(3);
    f.memory_mb = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)) / (1 << 20);
    return f;
}

}  // namespace loopegg
