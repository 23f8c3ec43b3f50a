// A process that runs what strangers wrote gives up what it does not need: the network, other processes, files to write, memory.
//
// What the system refuses to give is said by the answer and by docs/reference/trust.md: seccomp needs Linux on x86_64 or aarch64, Landlock a kernel
// that was built with it; limits hold everywhere.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace loopegg {

struct Confinement {
    long memory_mb = 0;                               // of address space; 0: no limit
    bool network = false;                             // may open connections
    bool programs = true;                             // may start other programs (a linker)
    std::vector<std::filesystem::path> writes{};      // folders that may be written to, besides those for temporary files
    bool files = false;                               // may write anywhere: `writes` means nothing
};

// Confines this process and all threads that it starts from now on; there is no way back. It also leaves no core file.
// Returns what holds, in words: "no network, no programs, writes only below 2 folders, 8192 MB".
std::string confine(const Confinement& c);

}  // namespace loopegg
