// What a Linux machine says about itself: its processors, their clocks and caches. This process reads the facts for 'native' targets, and the worker on a
// board reads them there.
#pragma once
#include <string>

namespace loopegg {

struct MachineFacts {
    std::string architecture;  // "x86_64", "aarch64"
    std::string cpu;           // for people: "Intel(R) Xeon(R)", or what /proc/cpuinfo calls an Arm's part
    std::string part;          // part number of an Arm's last processor, because the fast processors come last: "0xd08"
    std::string flags;         // of an x86: "sse avx2 fma"
    int cores = 1;             // that kernels of this process run on (loopeggrt_default_threads)
    double ghz = 0;            // 0: unknown
    double l1_kb = 0, l2_kb = 0, l3_kb = 0, memory_mb = 0;
};
MachineFacts machine_facts();

}  // namespace loopegg
