// Runs a network that was compiled for another CPU: as it is where this machine has that architecture, elsewhere under qemu, built with the cross compiler.
#pragma once
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/kernel/elf_object.hpp"
#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "graph/weights.hpp"

namespace loopegg {

// Whether the networks of a target can run here. Says that the test is skipped where they cannot.
inline bool runs_here(const Target& target, const char* test) {
    const std::string architecture = target.architecture();
    if (native_architecture() == architecture || (program_exists("qemu-" + architecture) && program_exists(architecture + "-linux-gnu-gcc"))) return true;
    std::printf("SKIPPED: %s: there is no qemu-%s and %s-linux-gnu-gcc here (setup/prepare test-extras installs them)\n", test, architecture.c_str(),
                architecture.c_str());
    return false;
}

// The only output of the network in this folder, for its only input.
inline std::vector<float> run_for(const Target& target, const std::filesystem::path& network, const Tensor& input) {
    const std::string folder = network.string(), architecture = target.architecture();
    const bool native = native_architecture() == architecture;
    write_file(network / "input.bin", {reinterpret_cast<const char*>(input.values.data()), input.values.size() * sizeof(float)});
    write_file(network / "main.c", R"(#include <stdio.h>
#include "network.h"
int main(int argc, char** argv) {
    static float in[1 << 16], out[1 << 16];
    const float* inputs[] = {in};
    float* outputs[] = {out};
    if (LOOPEGG_NAME(lacks)()[0]) return fprintf(stderr, "it needs %s\n", LOOPEGG_NAME(lacks)()), 3;
    loopegg_network* n = argc == 4 ? LOOPEGG_NAME(open)(argv[1]) : NULL;
    loopegg_context* c = LOOPEGG_NAME(create)(n, 2);
    FILE *from = fopen(argv[2], "rb"), *to = fopen(argv[3], "wb");
    if (!c || !from || !to || fread(in, 4, LOOPEGG_NAME(input_size)(0), from) == 0) return 1;
    if (LOOPEGG_NAME(run)(c, inputs, outputs)) return 2;
    return fwrite(out, 4, LOOPEGG_NAME(output_size)(0), to) == 0 || fclose(to) != 0;
})");
    run_or_throw(
        {native ? "cc" : architecture + "-linux-gnu-gcc", "-O1", folder + "/main.c", folder + "/network.so", "-Wl,-rpath," + folder, "-o", folder + "/main"},
        "building for " + target.name);
    std::vector<std::string> words{folder + "/main", folder + "/weights.bin", folder + "/input.bin", folder + "/output.bin"};
    if (!native) words.insert(words.begin(), {"qemu-" + architecture, "-L", "/usr/" + architecture + "-linux-gnu"});
    run_or_throw(words, "running for " + target.name);
    const std::string bytes = read_file(network / "output.bin");
    std::vector<float> output(bytes.size() / sizeof(float));
    std::memcpy(output.data(), bytes.data(), output.size() * sizeof(float));
    return output;
}

}  // namespace loopegg
