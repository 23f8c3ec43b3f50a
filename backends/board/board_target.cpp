#include "backends/board/board_target.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

// Arm's numbers of its own processors, by LLVM's names.
constexpr std::array<std::pair<const char*, const char*>, 17> arm_parts{{{"0xd03", "cortex-a53"},
                                                                         {"0xd04", "cortex-a35"},
                                                                         {"0xd05", "cortex-a55"},
                                                                         {"0xd07", "cortex-a57"},
                                                                         {"0xd08", "cortex-a72"},
                                                                         {"0xd09", "cortex-a73"},
                                                                         {"0xd0a", "cortex-a75"},
                                                                         {"0xd0b", "cortex-a76"},
                                                                         {"0xd0c", "neoverse-n1"},
                                                                         {"0xd0d", "cortex-a77"},
                                                                         {"0xd40", "neoverse-v1"},
                                                                         {"0xd41", "cortex-a78"},
                                                                         {"0xd42", "cortex-a78"},
                                                                         {"0xd44", "cortex-x1"},
                                                                         {"0xd46", "cortex-a510"},
                                                                         {"0xd47", "cortex-a710"},
                                                                         {"0xd49", "neoverse-n2"}}};

std::string arm_name(const std::string& part) {
    const auto found = std::find_if(arm_parts.begin(), arm_parts.end(), [&](const auto& row) { return part == row.first; });
    return found == arm_parts.end() ? "generic" : found->second;
}

// The levels of x86 that compilers agree on: the highest level all of whose features the processor has.
int x86_level(const std::string& text) {
    const std::vector<std::string> flags = split(text, ' ');
    auto has = [&](std::initializer_list<const char*> wanted) {
        return std::all_of(wanted.begin(), wanted.end(), [&](const char* w) { return std::find(flags.begin(), flags.end(), w) != flags.end(); });
    };
    if (!has({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})) return 1;
    if (!has({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})) return 2;
    return has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) ? 4 : 3;
}

}  // namespace

nlohmann::json target_of_board(const MachineFacts& f) {
    nlohmann::json tvm{{"kind", "llvm"}, {"mtriple", f.architecture + "-linux-gnu"}, {"num-cores", f.cores}};
    int lanes = 4, fma = 1;
    if (f.architecture == "aarch64") {
        tvm["mcpu"] = arm_name(f.part), tvm["mattr"] = {"+neon"};
    } else if (f.architecture == "x86_64") {
        const int level = x86_level(f.flags);
        tvm["mcpu"] = level == 1 ? std::string("x86-64") : fmt::format("x86-64-v{}", level);
        if (level == 4) tvm["vector-width"] = 512;
        lanes = level == 4 ? 16 : level == 3 ? 8 : 4, fma = level >= 3 ? 2 : 1;
    } else {
        throw UserError(fmt::format("the board's processor is an '{}', and loopegg compiles for x86_64 and aarch64", f.architecture));
    }
    nlohmann::json machine{{"cores", f.cores}, {"lanes", lanes}, {"fma_per_cycle", fma}, {"launch_us", 5}};
    for (const auto& [key, value] : {std::pair{"ghz", f.ghz}, {"l1_kb", f.l1_kb}, {"l2_kb", f.l2_kb}, {"l3_kb", f.l3_kb}})
        if (value > 0) machine[key] = value;
    return {{"tvm", tvm}, {"machine", machine}};
}

}  // namespace loopegg
