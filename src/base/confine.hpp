// A process that runs what strangers wrote gives up what it does not need: the network, other processes, files to write, memory.
//
// The system may lack some of these holds. Limits hold everywhere, seccomp needs Linux on x86_64 or aarch64, and Landlock needs a kernel that was built
// with it. The answer of confine() and docs/reference/trust.md say what holds.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace loopegg {

struct Confinement {
    long memory_mb = 0;                           // of address space; 0: no limit
    bool network = false;                         // the process may open connections
    bool programs = true;                         // the process may start other programs (a linker), and so other processes; it may always start threads
    std::vector<std::filesystem::path> writes{};  // folders that may be written to, besides those for temporary files
    bool files = false;                           // the process may write anywhere, and `writes` means nothing
};

// Confines this process and all threads that it starts from now on. There is no way back. The process leaves no core file either.
// A process that leads a group of processes may still end this group, and keeps its children in it.
// Returns what holds, in words: "8192 MB, writes only below 2 folders, no network, no programs, no processes".
std::string confine(const Confinement& c);

}  // namespace loopegg
