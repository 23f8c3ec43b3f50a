#include "backends/measure/run_confined.hpp"

#include "backends/measure/worker_process.hpp"
#include "backends/network/network.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "graph/npy.hpp"

namespace loopegg {

constexpr std::uintmax_t npy_header_bytes = 1 << 16;  // of a .npy file, and more

std::vector<Tensor> run_confined(const std::filesystem::path& folder, std::span<const Tensor> inputs) {
    const NetworkPorts ports = read_ports(folder);
    std::vector<std::unique_ptr<ScratchFile>> files;
    std::vector<std::string> in, out;
    for (const Tensor& t : inputs) {
        files.push_back(std::make_unique<ScratchFile>(".npy"));
        in.push_back(files.back()->path().string());
        write_scratch(in.back(), write_npy(t));
    }
    for (std::size_t i = 0; i < ports.outputs.size(); ++i) files.push_back(std::make_unique<ScratchFile>(".npy")), out.push_back(files.back()->path().string());
    WorkerProcess worker(loopegg_program(), network_limits());
    auto ask = [&](const nlohmann::json& request) {
        const auto reply = worker.ask(request);
        if (!reply["ok"].get<bool>())
            throw UserError(Diagnostic{"the network in '" + folder.string() + "' cannot be run: " + reply.value("why", "it failed"),
                                       {},
                                       "recompile it for this machine: loopegg compile MODEL --out DIR"});
    };
    ask({{"op", "open"}, {"id", 0}, {"folder", std::filesystem::absolute(folder).string()}});
    ask({{"op", "infer"}, {"id", 0}, {"inputs", in}, {"outputs", out}});
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < out.size(); ++i) {
        results.push_back(
            parse_npy(out[i], read_file(out[i], npy_header_bytes + sizeof(float) * static_cast<std::uintmax_t>(element_count(ports.outputs[i].shape)))));
        if (results.back().shape != ports.outputs[i].shape)
            throw UserError("the network in '" + folder.string() + "' gives an output of another shape than its network.json says");
    }
    return results;
}

}  // namespace loopegg
