#include <dlfcn.h>

#include <fmt/format.h>

#include "backends/kernel/elf_object.hpp"
#include "backends/network/network.hpp"
#include "backends/network/network_source.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"

namespace loopegg {
namespace {

using Open = void* (*)(const char*);
using Create = void* (*)(void*, int);
using Run = int (*)(void*, const float* const*, float* const*);
using RunSteps = int (*)(void*, const float* const*, float* const*, double*);
using Release = void (*)(void*);
using Count = int (*)();
using Size = long (*)(int);

constexpr const char* made_anew = "compile the network again: loopegg compile MODEL --out DIR";

std::vector<GraphInput> values(const JsonView& j) {
    std::vector<GraphInput> all;
    for (const JsonView& v : j.items()) {
        all.push_back({v.at("name").text(), {}});
        std::int64_t elements = 1;
        for (const JsonView& d : v.at("shape").items()) {
            all.back().shape.push_back(d.integer(1, std::int64_t{1} << 31));
            elements *= all.back().shape.back();
            if (elements > std::int64_t{1} << 31) d.fail("a network of ours has no tensor as large as that");
        }
    }
    return all;
}

}  // namespace

NetworkPorts read_ports(const std::filesystem::path& folder) {
    const JsonView j = read_json(read_source(folder / "network.json", 1 << 30));
    const auto abi = j.find("abi");
    if (!abi || abi->integer() != network_abi) throw UserError(Diagnostic{folder.string() + " was compiled by another version of loopegg", {}, made_anew});
    return {values(j.at("inputs")), values(j.at("outputs")), j.at("steps").items().size(), j.at("architecture").text(), j.at("prefix").text()};
}

void* LoadedNetwork::entry(const char* name) const {
    void* f = dlsym(library_, (ports_.prefix + name).c_str());
    if (!f) throw UserError(Diagnostic{"network.so has no " + ports_.prefix + name, {}, made_anew});
    return f;
}

// The sizes in network.json must be those of the code. Otherwise the code would write past our buffers.
bool LoadedNetwork::agrees_with_its_manifest() const {
    const auto count = [&](const char* name) { return reinterpret_cast<Count>(entry(name))(); };
    const auto agree = [&](const std::vector<GraphInput>& all, const char* number, const char* size) {
        if (count(number) != static_cast<int>(all.size())) return false;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (reinterpret_cast<Size>(entry(size))(static_cast<int>(i)) != element_count(all[i].shape)) return false;
        return true;
    };
    return agree(ports_.inputs, "inputs", "input_size") && agree(ports_.outputs, "outputs", "output_size") && count("steps") == static_cast<int>(ports_.steps);
}

void LoadedNetwork::refuse_missing_units(const std::filesystem::path& folder) const {
    void* lacks = dlsym(library_, (ports_.prefix + "lacks").c_str());  // a network that was compiled before needs no unit
    const std::string missing = lacks ? reinterpret_cast<const char* (*)()>(lacks)() : "";
    if (!missing.empty())
        throw UserError(Diagnostic{(folder / "network.so").string() + " needs " + missing + ", which this machine does not offer",
                                   {},
                                   "run it on a machine that has it, or compile the network for this one: loopegg compile MODEL --target host --out DIR"});
}

LoadedNetwork::LoadedNetwork(const std::filesystem::path& folder, int threads) : ports_(read_ports(folder)) {
    if (ports_.architecture != native_architecture())
        throw UserError(Diagnostic{folder.string() + " was compiled for " + ports_.architecture + ", and this machine is " + native_architecture(),
                                   {},
                                   "copy the folder to such a machine, or compile the network for this one: loopegg compile MODEL --target host --out DIR"});
    const std::filesystem::path so = std::filesystem::absolute(folder / "network.so");
    library_ = dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw UserError(Diagnostic{std::string("cannot load the network: ") + dlerror(), {}, made_anew});
    try {
        if (!agrees_with_its_manifest()) throw UserError(Diagnostic{folder.string() + ": network.json and network.so are not of one network", {}, made_anew});
        refuse_missing_units(folder);
        network_ = reinterpret_cast<Open>(entry("open"))((folder / "weights.bin").c_str());
        if (!network_)
            throw UserError(Diagnostic{
                (folder / "weights.bin").string() + " does not hold the weights of this network, or there is not enough memory for it", {}, made_anew});
        context_ = reinterpret_cast<Create>(entry("create"))(network_, threads);
        if (!context_) throw UserError("there is not enough memory to run " + folder.string());
    } catch (...) {
        close();
        throw;
    }
}

void LoadedNetwork::close() {
    if (context_) reinterpret_cast<Release>(entry("destroy"))(context_);
    if (network_) reinterpret_cast<Release>(entry("close"))(network_);
    dlclose(library_);
}
LoadedNetwork::~LoadedNetwork() { close(); }

void LoadedNetwork::run(std::span<const float* const> inputs, std::span<float* const> outputs) {
    if (reinterpret_cast<Run>(entry("run"))(context_, inputs.data(), outputs.data()) != 0) throw UserError("the network reported an error");
}

std::vector<double> LoadedNetwork::run_steps(std::span<const float* const> inputs, std::span<float* const> outputs) {
    std::vector<double> ms(ports_.steps, 0.0);
    if (reinterpret_cast<RunSteps>(entry("run_steps"))(context_, inputs.data(), outputs.data(), ms.data()) != 0)
        throw UserError("the network reported an error");
    return ms;
}

std::vector<Tensor> LoadedNetwork::run(std::span<const Tensor> inputs) {
    if (inputs.size() != ports_.inputs.size())
        throw UserError(fmt::format("the network takes {} inputs, and {} are given", ports_.inputs.size(), inputs.size()));
    std::vector<const float*> from;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].shape != ports_.inputs[i].shape)
            throw UserError("input '" + ports_.inputs[i].name + "' has the shape " + to_string(ports_.inputs[i].shape) +
                            " in the network, and what is given has " + to_string(inputs[i].shape));
        from.push_back(inputs[i].values.data());
    }
    std::vector<Tensor> results;
    std::vector<float*> to;
    for (const GraphInput& o : ports_.outputs) results.push_back({o.shape, std::vector<float>(static_cast<std::size_t>(element_count(o.shape)))});
    for (Tensor& t : results) to.push_back(t.values.data());
    run(from, to);
    return results;
}

}  // namespace loopegg
