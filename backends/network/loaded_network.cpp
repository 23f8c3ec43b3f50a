#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "backends/network/network.hpp"
#include "backends/kernel/elf.hpp"
#include "base/error.hpp"
#include "base/files.hpp"

namespace loopegg {
namespace {

using Open = void* (*)(const char*);
using Run = int (*)(void*, const float* const*, float* const*);
using RunSteps = int (*)(void*, const float* const*, float* const*, double*);
using Close = void (*)(void*);

template <class F> F entry(void* library, const char* name) {
    void* f = dlsym(library, name);
    if (!f) throw UserError(std::string("network.so has no ") + name);
    return reinterpret_cast<F>(f);
}

std::vector<GraphInput> values(const nlohmann::json& j) {
    std::vector<GraphInput> all;
    for (const auto& v : j) all.push_back({v.at("name"), v.at("shape").get<Shape>()});
    return all;
}

}  // namespace

LoadedNetwork::LoadedNetwork(const std::filesystem::path& folder) {
    nlohmann::json j;
    try {
        j = nlohmann::json::parse(read_file(folder / "network.json"));
        inputs_ = values(j.at("inputs")), outputs_ = values(j.at("outputs")), steps_ = j.at("steps").size();
        if (const std::string a = j.at("architecture"); a != native_architecture()) throw UserError(folder.string() + " was compiled for " + a + " and cannot run here");
    } catch (const nlohmann::json::exception& e) {
        throw UserError(folder.string() + " is no compiled network: " + e.what());
    }
    const std::filesystem::path so = std::filesystem::absolute(folder / "network.so");
    library_ = dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw UserError(std::string("cannot load the network: ") + dlerror());
    network_ = entry<Open>(library_, "loopegg_open")((folder / "weights.bin").c_str());
    if (!network_) throw UserError("cannot open " + (folder / "weights.bin").string() + " for this network");
}

// The library stays: its threads wait inside it.
LoadedNetwork::~LoadedNetwork() {
    if (network_) entry<Close>(library_, "loopegg_close")(network_);
}

void LoadedNetwork::run(std::span<const float* const> inputs, std::span<float* const> outputs) {
    if (entry<Run>(library_, "loopegg_run")(network_, inputs.data(), outputs.data()) != 0) throw UserError("the network reported an error");
}

std::vector<double> LoadedNetwork::run_steps(std::span<const float* const> inputs, std::span<float* const> outputs) {
    std::vector<double> ms(steps_, 0.0);
    if (entry<RunSteps>(library_, "loopegg_run_steps")(network_, inputs.data(), outputs.data(), ms.data()) != 0) throw UserError("the network reported an error");
    return ms;
}

std::vector<Tensor> LoadedNetwork::run(std::span<const Tensor> inputs) {
    if (inputs.size() != inputs_.size()) throw UserError("the network takes " + std::to_string(inputs_.size()) + " input(s)");
    std::vector<const float*> from;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (element_count(inputs[i].shape) != element_count(inputs_[i].shape)) throw UserError("input '" + inputs_[i].name + "' has another shape than the network's");
        from.push_back(inputs[i].values.data());
    }
    std::vector<Tensor> results;
    std::vector<float*> to;
    for (const GraphInput& o : outputs_) results.push_back({o.shape, std::vector<float>(static_cast<std::size_t>(element_count(o.shape)))});
    for (Tensor& t : results) to.push_back(t.values.data());
    run(from, to);
    return results;
}

}  // namespace loopegg
