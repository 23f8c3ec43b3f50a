#include "backends/measure/machine_load.hpp"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace loopegg {

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
