// Whole networks: compiled for this machine they give what LibTorch gives; for the others every kernel is real code of its architecture.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "backends/kernel/elf.hpp"
#include "backends/network/network.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "fisher/engine.hpp"
#include "graph/load.hpp"
#include "graph/weights.hpp"

using namespace loopegg;

namespace {

struct Folder {
    ScratchFile name{".network"};
    ~Folder() { std::filesystem::remove_all(name.path()); }
    const std::filesystem::path& path() const { return name.path(); }
};

std::vector<std::string> networks() {
    if (!std::getenv("LOOPEGG_DEEP")) return {"zoo:bert-tiny"};
    return {"zoo:resnet34-cifar10", "zoo:resnext29_2x64d", "zoo:densenet161-cifar10", "zoo:mobilenet_v2", "zoo:bert-tiny"};
}

void say(const std::string& line) {
    if (!std::getenv("LOOPEGG_DEEP")) return;
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

}  // namespace

TEST_CASE("whole networks compiled for this machine agree with LibTorch", "[flow]") {
    for (const std::string& name : networks()) {
        CAPTURE(name);
        const Model m = load_model(name);
        std::vector<Tensor> inputs;
        for (const GraphInput& in : m.graph.inputs) inputs.push_back(normal_tensor(in.shape, 3, in.name));
        const auto wanted = torch_room().forward(m.graph, m.weights, inputs, NormMode::running);
        Folder folder;
        compile_network({m.graph, m.weights, {}}, find_target("host"), folder.path());
        const auto got = LoadedNetwork(folder.path()).run(inputs);
        REQUIRE(got.size() == wanted.size());
        double worst = 0;
        for (std::size_t o = 0; o < got.size(); ++o) {
            REQUIRE(got[o].values.size() == wanted[o].values.size());
            double difference = 0, scale = 1;
            for (std::size_t i = 0; i < got[o].values.size(); ++i) {
                difference = std::max(difference, std::fabs(static_cast<double>(got[o].values[i]) - wanted[o].values[i]));
                scale = std::max(scale, std::fabs(static_cast<double>(wanted[o].values[i])));
            }
            worst = std::max(worst, difference / scale);
        }
        CHECK(worst <= 1e-4);
        say(fmt::format("{}: host agrees with LibTorch to {:.1e}", name, worst));
    }
}

TEST_CASE("whole networks become machine code of every architecture, kernel by kernel", "[flow]") {
    const bool deep = std::getenv("LOOPEGG_DEEP") != nullptr;  // otherwise a processor and a graphics processor for each network, in turns
    int turn = 0;
    for (const std::string& name : networks()) {
        const Model m = load_model(name);
        ++turn;
        std::vector<const char*> targets{turn % 2 ? "i7" : "a57", turn % 2 ? "gtx1080ti" : "nano"};
        if (deep) targets = {"i7", "a57", "gtx1080ti", "nano"};
        for (const char* target : targets) {
            CAPTURE(name, target);
            Folder folder;
            const CompiledNetwork n = compile_network({m.graph, m.weights, {}}, find_target(target), folder.path());
            int seen = 0;
            for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
                if (entry.path().extension() != ".o" && entry.path().extension() != ".cubin") continue;
                CHECK(elf_architecture(read_file(entry.path())) == find_target(target).architecture());
                ++seen;
            }
            CHECK(seen == n.kernels);
            say(fmt::format("{}: {} kernels for {}, all {}", name, seen, target, find_target(target).architecture()));
        }
    }
}
