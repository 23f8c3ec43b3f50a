#include <catch2/catch.hpp>

#include <cmath>

#include "backends/elf.hpp"
#include "backends/network.hpp"
#include "backends/scratch.hpp"
#include "base/files.hpp"
#include "graph/interpreter.hpp"
#include "graph/load.hpp"
#include "graph/weights.hpp"

using namespace loopegg;

namespace {

struct Folder {
    ScratchFile name{".network"};
    ~Folder() { std::filesystem::remove_all(name.path()); }
    const std::filesystem::path& path() const { return name.path(); }
};

void check_against_interpreter(const Graph& graph, const Weights& weights) {
    Folder folder;
    compile_network(graph, weights, {}, find_target("host"), folder.path());
    LoadedNetwork network(folder.path());
    std::vector<Tensor> inputs;
    Tensors named;
    for (const GraphInput& in : graph.inputs) inputs.push_back(normal_tensor(in.shape, 3, in.name)), named[in.name] = inputs.back();
    const auto got = network.run(inputs);
    const Tensors wanted = interpret(graph, weights, named);
    for (std::size_t o = 0; o < got.size(); ++o) {
        const auto& want = wanted.at(graph.outputs[o]).values;
        double worst = 0, scale = 1;
        for (std::size_t i = 0; i < want.size(); ++i) {
            worst = std::max(worst, std::fabs(static_cast<double>(want[i]) - got[o].values[i]));
            scale = std::max(scale, std::fabs(static_cast<double>(want[i])));
        }
        CHECK(worst <= 1e-4 * scale);
    }
}

// A residual block, a concat, pools, and a classifier: everything that is fused, viewed or placed.
const char* model = R"({"loopegg": 1, "name": "small", "inputs": [{"name": "x", "shape": [1, 3, 12, 12]}], "outputs": ["fc"], "nodes": [
  {"name": "c1", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 16, "kernel": 3, "padding": 1, "bias": false}},
  {"name": "b1", "op": "batch_norm", "inputs": ["c1"]},
  {"name": "r1", "op": "relu", "inputs": ["b1"]},
  {"name": "c2", "op": "conv2d", "inputs": ["r1"], "attrs": {"out_channels": 16, "kernel": 3, "padding": 1, "groups": 4}},
  {"name": "b2", "op": "batch_norm", "inputs": ["c2"]},
  {"name": "s", "op": "add", "inputs": ["b2", "r1"]},
  {"name": "r2", "op": "relu", "inputs": ["s"]},
  {"name": "c3", "op": "conv2d", "inputs": ["r2"], "attrs": {"out_channels": 16, "kernel": 3, "padding": 1, "groups": 16}},
  {"name": "cat", "op": "concat", "inputs": ["r2", "c3"]},
  {"name": "b3", "op": "batch_norm", "inputs": ["cat"]},
  {"name": "p", "op": "avg_pool", "inputs": ["b3"], "attrs": {"kernel": 3, "stride": 2, "padding": 1, "count_padding": false}},
  {"name": "m", "op": "max_pool", "inputs": ["p"], "attrs": {"kernel": 2}},
  {"name": "g", "op": "global_avg_pool", "inputs": ["m"]},
  {"name": "f", "op": "flatten", "inputs": ["g"]},
  {"name": "fc", "op": "linear", "inputs": ["f"], "attrs": {"out_features": 10}}]})";

Model small_model() {
    ScratchFile file(".json");
    write_file(file.path(), model);
    return load_model(file.path().string());
}

}  // namespace

TEST_CASE("a compiled network agrees with the interpreter", "[flow]") {
    const Model m = small_model();
    check_against_interpreter(m.graph, m.weights);
}

TEST_CASE("a transformer agrees with the interpreter", "[flow]") {
    const Model m = load_model("zoo:bert-tiny");
    check_against_interpreter(m.graph, m.weights);
}

TEST_CASE("every kernel of a network is real machine code of its target", "[flow]") {
    const Model m = small_model();
    for (const char* target : {"i7", "a57", "gtx1080ti", "nano", "h200"}) {
        CAPTURE(target);
        Folder folder;
        const CompiledNetwork n = compile_network(m.graph, m.weights, {}, find_target(target), folder.path());
        int seen = 0;
        for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
            const auto extension = entry.path().extension();
            if (extension != ".o" && extension != ".cubin") continue;
            CHECK(elf_architecture(read_file(entry.path())) == find_target(target).architecture());
            ++seen;
        }
        CHECK(seen == n.kernels);
    }
}
