// Quantized and recurrent operators of ONNX files: they compute what ONNX's documentation says, and quantized ones are written as they were read.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "graph/int8_scales_name.hpp"
#include "graph/weights.hpp"
#include "tests/made_onnx.hpp"

using namespace loopegg;
using namespace loopegg::test;

namespace {

OnnxTensor typed(int type, Ints dims, Ints values) {
    OnnxTensor t{Kind::int64, std::move(dims), {}, {}, std::move(values)};
    t.type = type;
    return t;
}
constexpr int uint8 = 2, int8 = 3, int32 = 6;

// What ONNX defines, in float32.
float rounded(float x, float scale, int zero, int low, int high) {
    return static_cast<float>(std::clamp(static_cast<int>(std::nearbyint(x / scale)) + zero, low, high) - zero) * scale;
}

// The same input through the same pair, by name.
Made& pair(Made& m, const std::string& x, const std::string& y, float scale, OnnxTensor zero, std::map<std::string, OnnxAttr> attrs = {}) {
    m.constant(y + "_scale", floats({}, {scale})).constant(y + "_zero", std::move(zero));
    m.node("QuantizeLinear", {x, y + "_scale", y + "_zero"}, {y + "_whole"}, attrs);
    return m.node("DequantizeLinear", {y + "_whole", y + "_scale", y + "_zero"}, {y}, attrs);
}

Tensor run(const Model& m, const Tensor& x) { return interpret(m.graph, m.weights, {{m.graph.inputs[0].name, x}}).at(m.graph.outputs[0]); }

std::ptrdiff_t roundings_in(const Model& m) {
    return std::count_if(m.graph.nodes.begin(), m.graph.nodes.end(), [](const Node& n) { return n.op == "fake_quantize"; });
}

void check_back(const Model& read) {
    const Model back = import_onnx("m.onnx", export_onnx(read.graph, read.weights));
    CHECK(back.graph == read.graph);
    CHECK(back.weights == read.weights);
}

// An image through a quantized convolution and a quantized linear layer, with scales for each channel.
Made classifier() {
    Made m({1, 2, 3, 3});
    pair(m, "x", "xq", 0.125f, typed(uint8, {}, {100}));
    m.constant("w", typed(int8, {4, 2, 3, 3},
                          [] {
                              Ints all;
                              for (std::int64_t i = 0; i < 72; ++i) all.push_back(i * 37 % 255 - 127);
                              return all;
                          }()))
        .constant("w_scale", floats({4}, {0.01f, 0.02f, 0.005f, 0.015f}))
        .constant("w_zero", typed(int8, {4}, {0, 0, 0, 0}))
        .constant("b", typed(int32, {4}, {100, -200, 300, 5}))
        .constant("b_scale", floats({4}, {0.00125f, 0.0025f, 0.000625f, 0.001875f}))
        .node("DequantizeLinear", {"w", "w_scale", "w_zero"}, {"conv.weight"}, {{"axis", std::int64_t{0}}})
        .node("DequantizeLinear", {"b", "b_scale"}, {"conv.bias"}, {{"axis", std::int64_t{0}}})
        .node("Conv", {"xq", "conv.weight", "conv.bias"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}})
        .node("Relu", {"c"}, {"r"})
        .node("Flatten", {"r"}, {"flat"});
    pair(m, "flat", "flatq", 0.05f, typed(int8, {}, {-128}));
    m.constant("v", typed(int8, {36, 3},
                          [] {
                              Ints all;
                              for (std::int64_t i = 0; i < 108; ++i) all.push_back(i * 53 % 255 - 127);
                              return all;
                          }()))
        .constant("v_scale", floats({}, {0.03f}))
        .node("DequantizeLinear", {"v", "v_scale"}, {"fc.weight"})
        .node("MatMul", {"flatq", "fc.weight"}, {"y"})
        .output("y");
    return m;
}

}  // namespace

TEST_CASE("values are rounded as ONNX says, ties to even and within the range", "[unit][graph]") {
    struct Case {
        OnnxTensor zero;
        int low, high;
        float scale;
    };
    for (const Case& c :
         {Case{typed(uint8, {}, {3}), 0, 255, 0.5f}, Case{typed(int8, {}, {0}), -128, 127, 0.1f}, Case{typed(int8, {}, {-7}), -128, 127, 0.037f},
          Case{typed(4, {}, {1000}), 0, 65535, 0.001f}, Case{typed(5, {1}, {0}), -32768, 32767, 0.25f}}) {
        Made m({1, 9}, 21);
        pair(m, "x", "y", c.scale, c.zero).output("y");
        const Model read = m.read();
        CHECK(roundings_in(read) == 1);
        const Tensor x{{1, 9}, {0.25f, 0.75f, -0.25f, 1.25f, 1e9f, -1e9f, 0.05f, 12.34f, -3.21f}};
        Tensor wanted = x;
        for (float& v : wanted.values)
            v = std::abs(v) < 1e8f ? rounded(v, c.scale, static_cast<int>(c.zero.integers[0]), c.low, c.high)
                                   : static_cast<float>((v > 0 ? c.high : c.low) - static_cast<int>(c.zero.integers[0])) * c.scale;
        CHECK(run(read, x).values == wanted.values);
        check_back(read);
    }
}

TEST_CASE("each place along an axis may have its own scale", "[unit][graph]") {
    for (const std::int64_t axis : {1, -1}) {
        Made m({2, 3, 3});
        m.constant("s", floats({3}, {0.5f, 0.25f, 0.1f})).constant("z", typed(int8, {3}, {0, 10, -10}));
        const std::map<std::string, OnnxAttr> attrs{{"axis", axis}};
        m.node("QuantizeLinear", {"x", "s", "z"}, {"q"}, attrs).node("DequantizeLinear", {"q", "s", "z"}, {"y"}, attrs).output("y");
        const Model read = m.read();
        const Tensor x = normal_tensor({2, 3, 3}, 5, "x"), y = run(read, x);
        const float scales[] = {0.5f, 0.25f, 0.1f};
        const int zeros[] = {0, 10, -10};
        for (std::size_t i = 0; i < x.values.size(); ++i) {
            const std::size_t c = axis == 1 ? i / 3 % 3 : i % 3;
            CHECK(y.values[i] == rounded(x.values[i], scales[c], zeros[c], -128, 127));
        }
        check_back(read);
    }
}

TEST_CASE("whole numbers between the two are whole numbers", "[unit][graph]") {
    Made m({1, 1, 4, 4});
    m.constant("s", floats({}, {0.5f})).constant("z", typed(int8, {}, {2})).constant("s2", floats({}, {0.25f}));
    m.node("QuantizeLinear", {"x", "s", "z"}, {"q"})
        .node("MaxPool", {"q"}, {"p"}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}})
        .node("DequantizeLinear", {"p", "s2", "z"}, {"y"})
        .output("y")
        .output("q");
    const Model read = m.read();
    const Tensor x{{1, 1, 4, 4}, counted({1, 1, 4, 4}).floats};
    const Tensors out = interpret(read.graph, read.weights, {{"x", x}});
    for (std::size_t i = 0; i < 16; ++i) CHECK(out.at(read.graph.outputs[1]).values[i] == std::nearbyint(x.values[i] / 0.5f) + 2);
    // The largest of each window, dequantized with another scale.
    CHECK(out.at(read.graph.outputs[0]).values == std::vector<float>{0.5f, 1.0f, 1.75f, 2.0f});
    check_back(read);
}

TEST_CASE("a quantized site has the scales of its file, and computes with rounded operands", "[unit][graph]") {
    const Model read = classifier().read();
    const Tensor& conv = read.weights.at(int8_scales_name("conv"));
    CHECK(conv.values == std::vector<float>{0.125f, 100, 0.01f, 0.02f, 0.005f, 0.015f});
    CHECK(read.weights.at(int8_scales_name("fc")).values == std::vector<float>{0.05f, 0, 0.03f, 0.03f, 0.03f});
    CHECK(read.weights.at("conv.weight").values[1] == -90 * 0.01f);
    CHECK(read.weights.at("conv.bias").values[1] == -200 * 0.0025f);
    check_back(read);
    // Without the rounding the values are others.
    OnnxReading plain;
    plain.as_float32 = true;
    const Model wide = classifier().read(plain);
    CHECK(roundings_in(wide) == 0);
    CHECK_FALSE(wide.weights.contains(int8_scales_name("conv")));
    CHECK(wide.weights.at("conv.weight") == read.weights.at("conv.weight"));
    const Tensor x = normal_tensor({1, 2, 3, 3}, 2, "x"), a = run(read, x), b = run(wide, x);
    CHECK(a.values != b.values);
    for (std::size_t i = 0; i < 3; ++i) CHECK(a.values[i] == Approx(b.values[i]).margin(3));
}

TEST_CASE("weights that int8 units cannot hold give no scales", "[unit][graph]") {
    for (const int kind : {0, 1, 2}) {
        Made m = classifier();
        for (auto& [name, t] : m.model.initializers) {
            if (kind == 0 && name == "w") t.integers[5] = -128;
            if (kind == 1 && name == "w_zero") t.integers = {0, 0, 90, 0};
        }
        if (kind == 2) m.model.nodes.erase(m.model.nodes.begin() + 1), m.model.nodes[3].inputs[0] = "x";  // the input is not rounded
        const Model read = m.read();
        INFO(kind);
        CHECK_FALSE(read.weights.contains(int8_scales_name("conv")));
        CHECK(read.weights.contains(int8_scales_name("fc")));
    }
}

TEST_CASE("rounding the same values again changes nothing, and is left out", "[unit][graph]") {
    Made m({2, 6});
    pair(m, "x", "a", 0.1f, typed(int8, {}, {5}));
    m.node("Transpose", {"a"}, {"t"});
    pair(m, "t", "y", 0.1f, typed(int8, {}, {5})).output("y");
    const Model read = m.read();
    CHECK(roundings_in(read) == 1);
    Made other({2, 6});
    pair(other, "x", "a", 0.1f, typed(int8, {}, {5}));
    pair(other, "a", "y", 0.2f, typed(int8, {}, {5})).output("y");
    CHECK(roundings_in(other.read()) == 2);
}

TEST_CASE("a site behind operators that move rounded values has their scales", "[unit][graph]") {
    Made m({2, 2, 3});
    pair(m, "x", "a", 0.1f, typed(int8, {}, {5}));
    m.node("Flatten", {"a"}, {"f"});
    pair(m, "f", "g", 0.1f, typed(int8, {}, {5}));
    m.constant("v", typed(int8, {6, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})).constant("s", floats({}, {0.5f}));
    m.node("DequantizeLinear", {"v", "s"}, {"fc.weight"}).node("MatMul", {"g", "fc.weight"}, {"y"}).output("y");
    const Model read = m.read();
    CHECK(read.weights.at(int8_scales_name("fc")).values == std::vector<float>{0.1f, 133, 0.5f, 0.5f});
    check_back(read);
}

TEST_CASE("sites that are chosen to multiply rounded numbers go out as QDQ or as casts", "[unit][graph]") {
    Made m({1, 4});
    m.constant("fc.weight", floats({2, 4}, {1, 0.3f, -0.7f, 0.01f, 2, 0.11f, 0.5f, -1.27f}));
    m.node("Gemm", {"x", "fc.weight"}, {"y"}, {{"transB", std::int64_t{1}}}).output("y");
    Model read = m.read();
    read.weights[int8_scales_name("fc")] = {{4}, {0.02f, 128, 0.01f, 0.02f}};
    const auto written = [&](const std::string& kind) {
        OnnxWriting how;
        if (!kind.empty()) how.rounded["fc"] = kind;
        return onnx_files(read.graph, read.weights, "out.onnx", how);
    };
    const Tensor x{{1, 4}, {0.513f, -0.2f, 1.0f, 0.333f}};
    CHECK(run(import_onnx("out.onnx", written("").model), x) == run(read, x));
    // The same numbers as an int8 unit: input and weights on their lattices.
    const Tensor y = run(import_onnx("out.onnx", written("int8").model), x);
    for (std::size_t o = 0; o < 2; ++o) {
        double sum = 0;
        const float step = o == 0 ? 0.01f : 0.02f;
        for (std::size_t i = 0; i < 4; ++i)
            sum += double{rounded(x.values[i], 0.02f, 128, 0, 255)} *
                   std::clamp(std::nearbyint(read.weights.at("fc.weight").values[o * 4 + i] / step), -127.0f, 127.0f) * step;
        CHECK(y.values[o] == Approx(sum).epsilon(1e-6));
    }
    const OnnxModel casts = parse_onnx("out.onnx", written("bf16").model);
    CHECK(std::count_if(casts.nodes.begin(), casts.nodes.end(), [](const OnnxNode& n) { return n.op == "Cast"; }) == 3);
    CHECK(casts.initializers[0].second.floats[1] == 0.30078125f);  // 0.3 as bf16
    CHECK(written("tf32").notes.size() == 1);
}

TEST_CASE("a reduction over no axes still squares, takes roots and logarithms", "[unit][graph]") {
    const std::map<std::string, std::vector<float>> wanted{{"ReduceL1", {4, 0.25f}},         {"ReduceL2", {4, 0.25f}},   {"ReduceSumSquare", {16, 0.0625f}},
                                                           {"ReduceLogSumExp", {-4, 0.25f}}, {"ReduceSum", {-4, 0.25f}}, {"ReduceMax", {-4, 0.25f}}};
    for (const auto& [op, values] : wanted) {
        CAPTURE(op);
        Made m({1, 2});
        m.node(op, {"x"}, {"y"}, {{"noop_with_empty_axes", std::int64_t{1}}}).output("y");
        CHECK(run(m.read(), {{1, 2}, {-4, 0.25f}}).values == values);
    }
}

TEST_CASE("roundings that make no sense are refused by the name of their node", "[unit][graph][errors]") {
    const auto refused = [](float scale, const OnnxTensor& zero, const std::string& words) {
        Made m({1, 4});
        pair(m, "x", "y", scale, zero).output("y");
        CHECK_THROWS_WITH(m.read(), Catch::Contains("QuantizeLinear 'n0'") && Catch::Contains(words));
    };
    refused(0, typed(int8, {}, {0}), "scale is 0");
    refused(-1, typed(int8, {}, {0}), "scale is -1");
    refused(INFINITY, typed(int8, {}, {0}), "scale is inf");
    refused(1, typed(int32, {}, {0}), "a type that is not supported");
    refused(1, typed(int8, {2}, {0, 0}), "1 scales and another number of zero points");
    Made along({1, 4});
    along.constant("s", floats({3}, {1, 1, 1})).node("QuantizeLinear", {"x", "s"}, {"y"}).output("y");
    CHECK_THROWS_WITH(along.read(), Catch::Contains("3 scales, which do not fit to an axis of 1x4"));
    Made dynamic({1, 4});
    dynamic.node("ReduceMax", {"x"}, {"s"}).node("QuantizeLinear", {"x", "s"}, {"y"}).output("y");
    CHECK_THROWS_WITH(dynamic.read(), Catch::Contains("scale must be a constant"));
    Made integer({1, 4});
    integer.constant("w", typed(int8, {4, 2}, Ints(8, 1)))
        .node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"})
        .node("MatMulInteger", {"q", "w"}, {"y"})
        .output("y");
    try {
        integer.read();
        FAIL("it was read");
    } catch (const UserError& e) {
        CHECK_THAT(e.diagnostics()[0].hint, Catch::Contains("QDQ format"));
    }
}

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
