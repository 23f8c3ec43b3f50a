// LSTM, GRU and RNN of ONNX files compute what ONNX's equations say, written here as they stand in its documentation.
#include <catch2/catch.hpp>

#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/weights.hpp"
#include "tests/made_onnx.hpp"

using namespace loopegg;
using namespace loopegg::test;

namespace {

struct Layer {
    std::string op = "LSTM", direction = "forward", activation{};
    bool bias = true, initial = true, reset_after = false, batch_first = false;
    std::int64_t length = 4;  // of all sequences
    std::int64_t steps = 4, batch = 2, features = 3, hidden = 5;

    std::int64_t gates() const { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }
    std::int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
};

OnnxTensor drawn(const Shape& shape, const std::string& name) { return floats(shape, normal_tensor(shape, 7, name).values); }

std::map<std::string, OnnxTensor> tensors_of(const Layer& l) {
    const std::int64_t d = l.directions(), g = l.gates() * l.hidden;
    const Shape state = l.batch_first ? Shape{l.batch, d, l.hidden} : Shape{d, l.batch, l.hidden};
    return {{"W", drawn({d, g, l.features}, "W")},
            {"R", drawn({d, g, l.hidden}, "R")},
            {"B", drawn({d, 2 * g}, "B")},
            {"h0", drawn(state, "h0")},
            {"c0", drawn(state, "c0")}};
}

Made made(const Layer& l) {
    Made m(l.batch_first ? Ints{l.batch, l.steps, l.features} : Ints{l.steps, l.batch, l.features});
    for (auto& [name, t] : tensors_of(l)) m.constant(name, t);
    OnnxTensor lengths = whole(Ints(static_cast<std::size_t>(l.batch), l.length));
    lengths.type = 6;
    m.constant("lengths", lengths);
    std::vector<std::string> in{"x", "W", "R", l.bias ? "B" : "", l.length < l.steps ? "lengths" : "", l.initial ? "h0" : ""}, out{"y", "h"};
    if (l.op == "LSTM") in.push_back(l.initial ? "c0" : ""), out.push_back("c");
    std::map<std::string, OnnxAttr> attrs{{"hidden_size", l.hidden}, {"direction", l.direction}};
    if (l.reset_after) attrs["linear_before_reset"] = std::int64_t{1};
    if (l.batch_first) attrs["layout"] = std::int64_t{1};
    if (!l.activation.empty()) attrs["activations"] = std::vector<std::string>(static_cast<std::size_t>(l.directions()), l.activation);
    m.node(l.op, in, out, attrs);
    for (const std::string& name : out) m.output(name);
    return m;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One row of a batch through one direction: what ONNX's documentation says, value by value.
struct Reference {
    const Layer& l;
    std::map<std::string, OnnxTensor> t = tensors_of(l);
    std::int64_t d = 0, row = 0;
    std::vector<double> h{}, c{};

    std::size_t state_at(std::int64_t k) const {
        return static_cast<std::size_t>(l.batch_first ? (row * l.directions() + d) * l.hidden + k : (d * l.batch + row) * l.hidden + k);
    }
    void begin() {
        for (std::int64_t k = 0; k < l.hidden; ++k) {
            h.push_back(l.initial ? t["h0"].floats[state_at(k)] : 0.0);
            c.push_back(l.initial ? t["c0"].floats[state_at(k)] : 0.0);
        }
    }
    double weight(const char* name, std::int64_t gate, std::int64_t k, const std::vector<double>& by) {
        double sum = 0;
        const std::int64_t first = ((d * l.gates() + gate) * l.hidden + k) * static_cast<std::int64_t>(by.size());
        for (std::size_t i = 0; i < by.size(); ++i) sum += by[i] * t[name].floats[static_cast<std::size_t>(first) + i];
        return sum;
    }
    double bias(bool of_state, std::int64_t gate, std::int64_t k) {
        const std::int64_t g = l.gates();
        return l.bias ? t["B"].floats[static_cast<std::size_t>(((d * 2 + of_state) * g + gate) * l.hidden + k)] : 0.0;
    }
    double gate(const std::vector<double>& x, std::int64_t g, std::int64_t k) {
        return weight("W", g, k, x) + weight("R", g, k, h) + bias(false, g, k) + bias(true, g, k);
    }

    void step(const std::vector<double>& x) {
        std::vector<double> next = h, cells = c, reset(h.size());
        for (std::int64_t k = 0; k < l.hidden && l.op == "GRU"; ++k) reset[static_cast<std::size_t>(k)] = sigmoid(gate(x, 1, k));
        for (std::int64_t k = 0; k < l.hidden; ++k) {
            const auto i = static_cast<std::size_t>(k);
            if (l.op == "RNN") {
                const double sum = gate(x, 0, k);
                next[i] = l.activation == "Relu" ? std::max(0.0, sum) : std::tanh(sum);
            } else if (l.op == "GRU") {
                std::vector<double> held = h;
                for (std::size_t j = 0; j < held.size(); ++j) held[j] *= reset[j];
                const double inner = l.reset_after ? reset[i] * (weight("R", 2, k, h) + bias(true, 2, k)) : weight("R", 2, k, held) + bias(true, 2, k);
                const double z = sigmoid(gate(x, 0, k)), candidate = std::tanh(weight("W", 2, k, x) + bias(false, 2, k) + inner);
                next[i] = (1 - z) * candidate + z * h[i];
            } else {
                cells[i] = sigmoid(gate(x, 2, k)) * c[i] + sigmoid(gate(x, 0, k)) * std::tanh(gate(x, 3, k));
                next[i] = sigmoid(gate(x, 1, k)) * std::tanh(cells[i]);
            }
        }
        h = next, c = cells;
    }
};

// Y, Y_h and Y_c.
std::map<std::string, std::vector<float>> expected(const Layer& l, const Tensor& x) {
    const std::int64_t directions = l.directions();
    std::map<std::string, std::vector<float>> y;
    y["y"].resize(static_cast<std::size_t>(l.steps * directions * l.batch * l.hidden));
    y["h"].resize(static_cast<std::size_t>(directions * l.batch * l.hidden)), y["c"] = y["h"];
    for (std::int64_t d = 0; d < directions; ++d)
        for (std::int64_t row = 0; row < l.batch; ++row) {
            Reference r{l};
            r.d = d, r.row = row;
            r.begin();
            for (std::int64_t i = 0; i < l.length; ++i) {
                const std::int64_t step = d == 1 || l.direction == "reverse" ? l.length - 1 - i : i;
                std::vector<double> in;
                for (std::int64_t f = 0; f < l.features; ++f)
                    in.push_back(x.values[static_cast<std::size_t>(((l.batch_first ? row * l.steps + step : step * l.batch + row)) * l.features + f)]);
                r.step(in);
                for (std::int64_t k = 0; k < l.hidden; ++k) {
                    const std::int64_t place = l.batch_first ? (row * l.steps + step) * directions + d : (step * directions + d) * l.batch + row;
                    y["y"][static_cast<std::size_t>(place * l.hidden + k)] = static_cast<float>(r.h[static_cast<std::size_t>(k)]);
                }
            }
            for (std::int64_t k = 0; k < l.hidden; ++k) {
                y["h"][r.state_at(k)] = static_cast<float>(r.h[static_cast<std::size_t>(k)]);
                y["c"][r.state_at(k)] = static_cast<float>(r.c[static_cast<std::size_t>(k)]);
            }
        }
    return y;
}

std::vector<Layer> layers() {
    std::vector<Layer> all;
    for (const char* op : {"LSTM", "GRU", "RNN"})
        for (const char* direction : {"forward", "reverse", "bidirectional"})
            for (int kind = 0; kind < 5; ++kind) {
                Layer l{.op = op, .direction = direction};
                l.initial = kind % 2 == 0, l.bias = kind != 1;
                l.reset_after = kind >= 1 && l.op == "GRU";
                l.length = kind == 2 ? 3 : 4;
                l.batch_first = kind == 3;
                if (kind == 4) l.steps = l.length = 1;
                if (l.op == "RNN" && kind == 0) l.activation = "Relu";
                all.push_back(l);
            }
    return all;
}

double worst(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return INFINITY;
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - b[i]));
    return most;
}

}  // namespace

TEST_CASE("recurrent layers compute ONNX's equations, in files of our own too", "[unit][graph]") {
    for (const Layer& l : layers()) {
        INFO(fmt::format("{} {} bias {} initial {} reset_after {} length {} batch_first {}", l.op, l.direction, l.bias, l.initial, l.reset_after, l.length,
                         l.batch_first));
        const Model read = made(l).read();
        const Tensor x = normal_tensor(read.graph.inputs[0].shape, 3, "x");
        const Tensors given{{"x", x}}, got = interpret(read.graph, read.weights, given);
        const auto wanted = expected(l, x);
        for (const auto& [name, tensor] : got) {
            INFO(name);
            CHECK(worst(tensor.values, wanted.at(name)) < 1e-5);
        }
        CHECK(got.size() == (l.op == "LSTM" ? 3 : 2));
        CHECK(got.at("y").shape == (l.batch_first ? Shape{l.batch, l.steps, l.directions(), l.hidden} : Shape{l.steps, l.directions(), l.batch, l.hidden}));
        CHECK(got.at("h").shape == (l.batch_first ? Shape{l.batch, l.directions(), l.hidden} : Shape{l.directions(), l.batch, l.hidden}));
        const Model back = import_onnx("m.onnx", export_onnx(read.graph, read.weights));
        CHECK(back.graph == read.graph);
        CHECK(back.weights == read.weights);
    }
}

TEST_CASE("the inputs of all steps are one product, and all steps share their weights", "[unit][graph]") {
    Layer l;
    l.steps = l.length = 30;
    const Model read = made(l).read();
    std::size_t linear = 0, elements = 0;
    for (const Node& node : read.graph.nodes) linear += node.op == "linear";
    for (const auto& [name, tensor] : read.weights) elements += tensor.values.size();
    CHECK(linear == 1);
    const auto gates = static_cast<std::size_t>(4 * l.hidden);
    CHECK(elements == gates * static_cast<std::size_t>(l.features + l.hidden + 1) + static_cast<std::size_t>(2 * l.batch * l.hidden));
}

TEST_CASE("the number of steps is fixed, and the batch is not", "[unit][graph]") {
    Layer l;
    l.initial = false;
    Made m = made(l);
    CHECK_THROWS_AS(with_batch(m.read().graph, 8), UserError);  // the first dimension counts the steps
    l.batch_first = true;
    const Graph wider = with_batch(made(l).read().graph, 8);
    CHECK(wider.shape_of("y") == Shape{8, l.steps, 1, l.hidden});
}

TEST_CASE("what a recurrent layer cannot be is refused by the name of its node", "[unit][graph][errors]") {
    const auto refused = [](const std::function<void(OnnxNode&, OnnxModel&)>& change, const std::string& words) {
        Made m = made({});
        change(m.model.nodes[0], m.model);
        CHECK_THROWS_WITH(m.read(), Catch::Contains("'m.onnx'") && Catch::Contains("LSTM 'n0'") && Catch::Contains(words));
    };
    const auto add = [](OnnxModel& m, const std::string& name, OnnxTensor t) { m.initializers.emplace_back(name, std::move(t)); };
    refused([&](OnnxNode& n, OnnxModel& m) { add(m, "P", counted({1, 15})), n.inputs.push_back("P"); }, "peephole");
    refused([&](OnnxNode& n, OnnxModel& m) { add(m, "odd", whole({4, 3})), n.inputs[4] = "odd"; }, "different sequence_lens");
    refused([&](OnnxNode& n, OnnxModel& m) { add(m, "long", whole({5, 5})), n.inputs[4] = "long"; }, "sequence_lens are 5, and its input has 4 steps");
    refused([&](OnnxNode& n, OnnxModel&) { n.inputs[4] = "x"; }, "known only when it runs");
    refused([&](OnnxNode& n, OnnxModel&) { n.attrs["clip"] = 3.0f; }, "clip");
    refused([&](OnnxNode& n, OnnxModel&) { n.attrs["input_forget"] = std::int64_t{1}; }, "input_forget");
    refused([&](OnnxNode& n, OnnxModel&) { n.attrs["direction"] = std::string("sideways"); }, "'sideways'");
    refused([&](OnnxNode& n, OnnxModel&) { n.attrs["activations"] = std::vector<std::string>{"Sigmoid", "Affine", "Tanh"}; }, "'Affine'");
    refused([&](OnnxNode& n, OnnxModel&) { n.attrs["activations"] = std::vector<std::string>{"Sigmoid"}; }, "1 activations, 3 are expected");
    refused([&](OnnxNode& n, OnnxModel&) { n.attrs["hidden_size"] = std::int64_t{6}; }, "do not fit");
    refused([&](OnnxNode& n, OnnxModel&) { n.inputs[1] = "R"; }, "do not fit");
    refused([&](OnnxNode& n, OnnxModel&) { n.inputs[1] = "x"; }, "must be a constant");
    refused([&](OnnxNode& n, OnnxModel&) { n.inputs[5] = "B"; }, "initial state");
    refused([&](OnnxNode&, OnnxModel& m) { m.inputs[0].shape = {5000, 2, 3}; }, "5000 steps");
    refused([&](OnnxNode&, OnnxModel& m) { m.inputs[0].shape = {4, 2}; }, "three dimensions");
}
