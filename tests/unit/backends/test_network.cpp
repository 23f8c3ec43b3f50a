#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "backends/kernel/elf_object.hpp"
#include "backends/network/network.hpp"
#include "backends/network/network_plan.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
#include "fisher/engine.hpp"
#include "graph/builder.hpp"
#include "graph/carry_weights.hpp"
#include "graph/interpreter.hpp"
#include "graph/load.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/onnx/onnx_model.hpp"
#include "graph/weights.hpp"
#include "rewrite/plan_rules.hpp"
#include "tests/small_graphs.hpp"
#include "tests/unit/backends/other_machine.hpp"

using namespace loopegg;

namespace {

struct Folder {
    ScratchFile name{".network"};
    ~Folder() { std::filesystem::remove_all(name.path()); }
    const std::filesystem::path& path() const { return name.path(); }
};

// Memory of a caller, with a page of known bytes before and behind it.
class CallersMemory {
public:
    CallersMemory(std::size_t floats, std::size_t offset)
        : bytes_(4 * floats + 4 * page, mark), begin_(2 * page - address(bytes_.data()) % page + offset), floats_(floats) {}
    float* data() { return reinterpret_cast<float*>(bytes_.data() + begin_); }
    bool intact() const {
        const auto is_mark = [](unsigned char b) { return b == mark; };
        return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_), is_mark) &&
               std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(begin_ + 4 * floats_), bytes_.end(), is_mark);
    }

private:
    static constexpr std::size_t page = 4096;
    static constexpr unsigned char mark = 0x5a;
    static std::size_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
    std::vector<unsigned char> bytes_;
    std::size_t begin_, floats_;
};

// Memory that kernels use as it is, memory that has to be copied, and inputs where outputs are written: the outputs are the same, and nothing else is written.
void check_in_callers_memory(LoadedNetwork& network, const std::vector<Tensor>& inputs, const std::vector<Tensor>& wanted) {
    for (const auto& [in_at, out_at] : {std::pair<std::size_t, std::size_t>{64, 64}, {64, 4}, {4, 64}, {0, 0}}) {
        CAPTURE(in_at, out_at);
        std::vector<CallersMemory> in, out;
        std::vector<const float*> from;
        std::vector<float*> to;
        for (const Tensor& t : inputs) in.emplace_back(t.values.size(), in_at);
        for (const Tensor& t : wanted) out.emplace_back(t.values.size(), out_at);
        for (std::size_t i = 0; i < in.size(); ++i) std::copy(inputs[i].values.begin(), inputs[i].values.end(), in[i].data()), from.push_back(in[i].data());
        for (CallersMemory& m : out) to.push_back(m.data());
        network.run(from, to);
        for (std::size_t i = 0; i < in.size(); ++i) CHECK((in[i].intact() && std::equal(inputs[i].values.begin(), inputs[i].values.end(), in[i].data())));
        for (std::size_t o = 0; o < out.size(); ++o)
            CHECK((out[o].intact() && std::memcmp(wanted[o].values.data(), out[o].data(), 4 * wanted[o].values.size()) == 0));
    }
    if (inputs.empty()) return;
    CallersMemory shared(std::max(inputs[0].values.size(), wanted[0].values.size()), 64);
    std::vector<std::vector<float>> rest;
    std::vector<const float*> from{shared.data()};
    std::vector<float*> to{shared.data()};
    for (std::size_t i = 1; i < inputs.size(); ++i) from.push_back(inputs[i].values.data());
    for (std::size_t o = 1; o < wanted.size(); ++o) rest.emplace_back(wanted[o].values.size());
    for (std::vector<float>& r : rest) to.push_back(r.data());
    std::copy(inputs[0].values.begin(), inputs[0].values.end(), shared.data());
    network.run(from, to);
    CHECK(std::memcmp(wanted[0].values.data(), shared.data(), 4 * wanted[0].values.size()) == 0);
    for (std::size_t o = 1; o < wanted.size(); ++o) CHECK(rest[o - 1] == wanted[o].values);
}

void check_against_interpreter(const Graph& graph, const Weights& weights) {
    Folder folder;
    compile_network({graph, weights, {}}, find_target("host"), folder.path());
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
    check_in_callers_memory(network, inputs, got);
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

// What others' models need besides: moved elements, reductions, functions with parameters, windows that end late, an operator that runs as it
// stands, and an output that is a constant.
TEST_CASE("operators of others' models are compiled as the interpreter has them", "[flow]") {
    ScratchFile file(".json");
    write_file(file.path(), R"({"loopegg": 1, "name": "others", "inputs": [{"name": "x", "shape": [1, 6, 9, 10]}],
  "outputs": ["same", "scores", "constant", "late", "opaque", "even"], "nodes": [
  {"name": "constant", "op": "parameter", "inputs": [], "attrs": {"shape": [3]}},
  {"name": "padded", "op": "pad", "inputs": ["x"], "attrs": {"before": [0, 0, 1, 0], "after": [0, 0, 0, 2], "value": -0.5}},
  {"name": "c", "op": "conv2d", "inputs": ["padded"], "attrs": {"out_channels": 32, "kernel": 3, "stride": 2}},
  {"name": "hs", "op": "hard_swish", "inputs": ["c"]},
  {"name": "first", "op": "slice", "inputs": ["hs"], "attrs": {"starts": [0, 0, 0, 0], "ends": [1, 16, 9, 9], "steps": [1, 1, 1, 1]}},
  {"name": "second", "op": "slice", "inputs": ["hs"], "attrs": {"starts": [0, 16, 0, 0], "ends": [1, 32, 9, 9], "steps": [1, 1, 1, 1]}},
  {"name": "odd", "op": "slice", "inputs": ["hs"], "attrs": {"starts": [0, 1, 1, 0], "ends": [9, 32, 9, 9], "steps": [1, 2, 1, 2]}},
  {"name": "even", "op": "leaky_relu", "inputs": ["odd"], "attrs": {"alpha": 0.2}},
  {"name": "gate", "op": "reduce_mean", "inputs": ["first"], "attrs": {"axes": [2, 3]}},
  {"name": "s", "op": "sigmoid", "inputs": ["gate"]},
  {"name": "gated", "op": "mul", "inputs": ["second", "s"]},
  {"name": "sum", "op": "sub", "inputs": ["gated", "first"]},
  {"name": "wide", "op": "expand", "inputs": ["s"], "attrs": {"shape": [0, 0, 3, 2]}},
  {"name": "most", "op": "reduce_max", "inputs": ["sum"], "attrs": {"axes": [1], "keepdims": false}},
  {"name": "late", "op": "max_pool", "inputs": ["x"], "attrs": {"kernel": 3, "stride": 2, "padding_end": [0, 1]}},
  {"name": "mean", "op": "avg_pool", "inputs": ["x"], "attrs": {"kernel": 2, "stride": 2, "padding_end": [1, 0], "count_padding": false}},
  {"name": "opaque", "op": "onnx", "inputs": ["mean"], "attrs": {
   "node": "{\"op\":\"CumSum\",\"opset\":18, \"attrs\":{}, \"outputs\":1, \"inputs\":[{\"from\":0, \"type\":1}, {\"type\":7, \"dims\":[], \"values\":[1]}]}"}},
  {"name": "clipped", "op": "clip", "inputs": ["most"], "attrs": {"low": -0.1, "high": 0.3}},
  {"name": "total", "op": "reduce_sum", "inputs": ["wide"], "attrs": {"axes": [2, 3], "keepdims": false}},
  {"name": "scores", "op": "linear", "inputs": ["total"], "attrs": {"out_features": 5}},
  {"name": "same", "op": "identity", "inputs": ["clipped"]}]})");
    const Model m = load_model(file.path().string());
    check_against_interpreter(m.graph, m.weights);
}

// An LSTM of an ONNX file with sizes of 16.
Model lstm(std::int64_t steps, std::int64_t batch) {
    OnnxModel m;
    m.producer = "somebody", m.opset = 18;
    m.inputs.push_back({"x", {steps, batch, 16}}), m.outputs.push_back({"y", {steps, 2, batch, 16}});
    for (const auto& [name, shape] : std::map<std::string, Shape>{{"W", {2, 64, 16}}, {"R", {2, 64, 16}}, {"B", {2, 128}}})
        m.initializers.emplace_back(name, OnnxTensor{OnnxTensor::Kind::float32, shape, normal_tensor(shape, 1, name).values});
    m.nodes.push_back({"LSTM", "lstm", {"x", "W", "R", "B"}, {"y"}, {{"hidden_size", std::int64_t{16}}, {"direction", std::string("bidirectional")}}});
    return import_onnx("lstm.onnx", serialize_onnx(m), {}, false);
}

TEST_CASE("a recurrent layer is compiled as the interpreter has it, and equal steps are equal kernels", "[flow]") {
    std::vector<int> kernels;
    for (const auto& [steps, batch] : {std::pair<std::int64_t, std::int64_t>{4, 1}, {9, 1}, {4, 3}}) {
        const Model m = lstm(steps, batch);
        check_against_interpreter(m.graph, m.weights);
        std::set<std::string> nests;
        for (const NetworkPlan::Step& s : plan_without_constants(m.graph, {}, find_target("host")).steps)
            if (s.nest) nests.insert(to_string(s.nest->nest));
        kernels.push_back(static_cast<int>(nests.size()));
    }
    CHECK(kernels[1] == kernels[0]);  // the product of all inputs has another size, and everything else is the same
}

TEST_CASE("roundings are compiled as the interpreter has them", "[flow]") {
    GraphBuilder b("rounded");
    const std::string x = b.input("x", {3, 5, 7});
    const std::string whole = b.node("round", "round", {b.node("scale", "large", {x}, {{"value", 4.0}})});
    b.node("fake_quantize", "bytes", {x}, {{"scale", 0.125}, {"zero", 3.0}, {"low", 0.0}, {"high", 255.0}});
    b.node("quantize", "numbers", {x}, {{"scale", 0.0123}, {"zero", -5.0}});
    const Graph graph = b.finish({whole, "bytes", "numbers"});
    Folder folder;
    compile_network({graph, {}, {}}, find_target("host"), folder.path());
    const Tensor input = normal_tensor({3, 5, 7}, 4, "x");
    const auto got = LoadedNetwork(folder.path()).run(std::vector{input});
    const Tensors wanted = interpret(graph, {}, {{"x", input}});
    for (std::size_t o = 0; o < got.size(); ++o) CHECK(got[o].values == wanted.at(graph.outputs[o]).values);  // bit for bit
}

TEST_CASE("outputs may be an input, one value twice, and parts of each other", "[flow]") {
    ScratchFile file(".json");
    write_file(file.path(), R"({"loopegg": 1, "name": "ports", "inputs": [{"name": "x", "shape": [1, 16, 6, 6]}],
  "outputs": ["c1", "cat", "view", "again", "x2", "last"], "nodes": [
  {"name": "x2", "op": "identity", "inputs": ["x"]},
  {"name": "c1", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 16, "kernel": 3, "padding": 1}},
  {"name": "again", "op": "identity", "inputs": ["c1"]},
  {"name": "c2", "op": "conv2d", "inputs": ["c1"], "attrs": {"out_channels": 16, "kernel": 1}},
  {"name": "cat", "op": "concat", "inputs": ["c1", "c2"]},
  {"name": "view", "op": "flatten", "inputs": ["cat"]},
  {"name": "last", "op": "conv2d", "inputs": ["cat"], "attrs": {"out_channels": 5, "kernel": 3}}]})");
    const Model m = load_model(file.path().string());
    check_against_interpreter(m.graph, m.weights);
}

TEST_CASE("every operator with loops is compiled as the interpreter has it", "[flow]") {
    for (const LoopOperator& row : loop_operators()) {
        INFO(row.name);
        check_against_interpreter(test::loop_graph(row), {});
    }
}

TEST_CASE("the steps of a network are timed inside it", "[flow]") {
    const Model m = small_model();
    Folder folder;
    const CompiledNetwork compiled = compile_network({m.graph, m.weights, {}}, find_target("host"), folder.path());
    const std::filesystem::path none = folder.path() / "none", folders[]{folder.path(), none};
    const auto times = measure_steps(folders, 2);
    REQUIRE(times.size() == 2);
    CHECK(times[0].size() == static_cast<std::size_t>(compiled.steps));
    CHECK(std::all_of(times[0].begin(), times[0].end(), [](double ms) { return ms >= 0; }));
    CHECK(times[1].empty());
}

TEST_CASE("what follows a site is fused into it by the rules over sites", "[unit]") {
    const Model m = small_model();
    std::map<std::string, std::vector<std::string>> fused;
    for (const NetworkPlan::Step& step : plan_network(m.graph, m.weights, {}, find_target("host")).steps) {
        if (!step.nest) continue;
        for (const FusedRule& f : step.nest->fused) fused[step.nest->site].push_back(f.node.empty() ? f.rule : f.rule + " " + f.node);
    }
    CHECK(fused["c1"] == std::vector<std::string>{"fuse-batch-norm b1", "fold-scale", "fuse-activation r1"});
    CHECK(fused["c2"] == std::vector<std::string>{"fuse-batch-norm b2", "fold-bias", "fold-scale", "fuse-add s", "fuse-activation r2"});
    CHECK(fused["b3"].empty());
}

// Outputs that come back do so before the batch norm, so its scale stays out of the weights.
TEST_CASE("what follows a restored site is fused into it as well", "[flow]") {
    const Model m = small_model();
    const Graph graph = apply_plan(
        m.graph,
        read_plan(make_source("plan.json",
                              R"({"steps": [{"site": "c[12]", "apply": [{"rule": "bottleneck-axis", "with": {"?a": "co", "?k": 2}, "restore": "repeat"}]}]})")),
        shipped_plan_rules());
    const Weights weights = carry_weights(m.graph, m.weights, graph);
    std::vector<std::string> fused;
    for (const NetworkPlan::Step& step : plan_network(graph, weights, {}, find_target("host")).steps)
        if (step.nest && step.nest->site == "c2")
            for (const FusedRule& f : step.nest->fused) fused.push_back(f.rule);
    CHECK(fused == std::vector<std::string>{"fuse-batch-norm-restored", "fuse-add-restored", "fuse-activation-restored"});
    check_against_interpreter(graph, weights);
}

// No batch norm, activation or addition of these networks is a step of its own.
TEST_CASE("a residual network is its convolutions, pools and classifier", "[unit]") {
    const Model m = load_model("zoo:resnet34-cifar10");
    std::map<std::string, int> steps;
    for (const NetworkPlan::Step& step : plan_network(m.graph, m.weights, {}, find_target("host")).steps)
        for (const Node& node : m.graph.nodes)
            if (step.nest && node.name == step.nest->site) ++steps[node.op];
    CHECK(steps["conv2d"] == 36);
    CHECK(steps["linear"] == 1);
    CHECK(steps["batch_norm"] + steps["relu"] + steps["add"] == 0);
}

TEST_CASE("a transformer agrees with the interpreter", "[flow]") {
    const Model m = load_model("zoo:bert-tiny");
    check_against_interpreter(m.graph, m.weights);
}

TEST_CASE("no step of an attention only moves values or scales them", "[unit]") {
    const Model m = load_model("zoo:bert-tiny");
    std::map<std::string, std::vector<std::string>> fused;
    for (const NetworkPlan::Step& step : plan_network(m.graph, m.weights, {}, find_target("host")).steps) {
        CHECK(step.nest);
        if (step.nest)
            for (const FusedRule& f : step.nest->fused) fused[step.nest->site].push_back(f.rule + " " + f.node);
    }
    const std::string at = "encoder.layer.0.attention.self.";
    CHECK(fused[at + "scores"] == std::vector<std::string>{"read-moved " + at + "query.order", "fuse-scale " + at + "scale"});
    CHECK(fused[at + "key"] == std::vector<std::string>{"write-moved " + at + "key.order"});
    CHECK(fused[at + "context"] == std::vector<std::string>{"read-moved " + at + "value.order", "write-moved " + at + "merge"});
}

TEST_CASE("transposes are compiled as the interpreter has them, whoever writes and reads them", "[flow]") {
    ScratchFile file(".json");
    write_file(file.path(), R"({"loopegg": 1, "name": "moves", "inputs": [{"name": "x", "shape": [2, 3, 6, 8]}], "outputs": ["out", "both", "rows"], "nodes": [
      {"name": "turned", "op": "transpose", "inputs": ["x"], "attrs": {"order": [0, 2, 1, 3]}},
      {"name": "c", "op": "conv2d", "inputs": ["turned"], "attrs": {"out_channels": 4, "kernel": 3, "padding": 1}},
      {"name": "last", "op": "transpose", "inputs": ["c"], "attrs": {"order": [0, 2, 3, 1]}},
      {"name": "r", "op": "relu", "inputs": ["last"]},
      {"name": "back", "op": "transpose", "inputs": ["r"], "attrs": {"order": [3, 2, 1, 0]}},
      {"name": "soft", "op": "softmax", "inputs": ["back"]},
      {"name": "flat", "op": "reshape", "inputs": ["soft"], "attrs": {"shape": [4, 24, 2]}},
      {"name": "far", "op": "transpose", "inputs": ["flat"], "attrs": {"order": [0, 2, 1]}},
      {"name": "out", "op": "matmul", "inputs": ["far", "flat"]},
      {"name": "s", "op": "scale", "inputs": ["x"], "attrs": {"value": 0.5}},
      {"name": "both", "op": "transpose", "inputs": ["s"], "attrs": {"order": [1, 0, 3, 2]}},
      {"name": "seen", "op": "reshape", "inputs": ["both"], "attrs": {"shape": [6, 48]}},
      {"name": "fc", "op": "linear", "inputs": ["seen"], "attrs": {"out_features": 10}},
      {"name": "rows", "op": "transpose", "inputs": ["fc"], "attrs": {"order": [1, 0]}}]})");
    const Model m = load_model(file.path().string());
    check_against_interpreter(m.graph, m.weights);
}

TEST_CASE("every kernel of a network is real machine code of its target", "[flow]") {
    const Model m = small_model();
    for (const char* target : {"i7", "a57", "gtx1080ti", "nano", "h200"}) {
        CAPTURE(target);
        Folder folder;
        const CompiledNetwork n = compile_network({m.graph, m.weights, {}}, find_target(target), folder.path());
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

TEST_CASE("a network compiled for the i7 and for the Cortex-A57 gives the host's output", "[device]") {
    const Model m = small_model();
    Folder host;
    compile_network({m.graph, m.weights, {}}, find_target("host"), host.path());
    const Tensor input = normal_tensor(m.graph.inputs[0].shape, 3, "x");
    const std::vector<float> wanted = LoadedNetwork(host.path()).run(std::vector{input})[0].values;
    for (const char* name : {"i7", "a57"}) {
        CAPTURE(name);
        const Target target = find_target(name);
        if (!runs_here(target, "a network compiled for the i7 and for the Cortex-A57 gives the host's output")) continue;
        Folder folder;
        compile_network({m.graph, m.weights, {}}, target, folder.path());
        const std::vector<float> got = run_for(target, folder.path(), input);
        REQUIRE(got.size() == wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(std::fabs(got[i] - wanted[i]) <= 1e-4f * std::max(1.0f, std::fabs(wanted[i])));
    }
}

namespace {

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
        const auto wanted = torch_runtime().forward(m.graph, m.weights, inputs, NormMode::running);
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
    const bool deep = std::getenv("LOOPEGG_DEEP") != nullptr;  // otherwise a processor and a graphics processor for each network, alternately
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
