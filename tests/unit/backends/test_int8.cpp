// Networks whose products are of int8 numbers: the scales of their inputs, what they compute, and what is refused.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "backends/network/int8_calibration.hpp"
#include "backends/network/rounding_error.hpp"
#include "base/scratch.hpp"
#include "graph/builder.hpp"
#include "graph/load.hpp"
#include "graph/weights.hpp"
#include "nest/term/int8_scales.hpp"
#include "nest/term/rounding.hpp"

using namespace loopegg;

namespace {

// This machine with dot products of int8 numbers, whether it has them or not: without them, plain arithmetic computes the same.
Target with_dots() {
    Target target = find_target("host");
    target.machine.units = {{"vpdpbusd", "int8", 8, 16, 16, 4, 6, 16, 5, 2, {"avx512vnni", "avx512vl"}}};
    target.allowed = {"int8"};
    return target;
}

Model two_convolutions() {
    GraphBuilder b("two");
    const std::string x = b.input("x", {1, 16, 16, 16});
    const std::string first = b.conv("first", x, {.out = 32, .kernel = 3, .padding = 1});
    const std::string positive = b.relu("positive", first);
    Model model;
    model.graph = b.finish({b.conv("second", positive, {.out = 32, .kernel = 1})});
    model.weights = initial_weights(model.graph, 3);
    return model;
}

std::vector<std::vector<Tensor>> images(const Graph& graph, std::uint64_t seed) {
    std::vector<std::vector<Tensor>> all;
    for (std::uint64_t i = 0; i < 4; ++i) all.push_back({normal_tensor(graph.inputs[0].shape, seed + i, "x")});
    return all;
}

Weights calibrated(const Model& model) {
    Weights all = model.weights;
    for (auto& [name, scale] : int8_scales(model.graph, model.weights, images(model.graph, 100))) all[name] = scale;
    return all;
}

void compile(const Model& model, const Weights& weights) {
    const ScratchFile folder(".network");
    compile_network({model.graph, weights, {}}, with_dots(), folder.path());
    std::filesystem::remove_all(folder.path());
}

}  // namespace

TEST_CASE("int8 numbers are whole numbers that a scale maps, to the nearest, ties to even, within eight bits", "[unit]") {
    const Int8Scales whole;
    for (int x = -127; x <= 127; ++x) CHECK(byte_of(static_cast<float>(x), whole) == x + 128);
    CHECK(byte_of(0.5f, whole) == 128);
    CHECK(byte_of(1.5f, whole) == 130);
    CHECK(byte_of(1e9f, whole) == 255);
    CHECK(byte_of(-1e9f, whole) == 0);
    CHECK(byte_of(1.0f, {.input = 0.5f, .zero = 0}) == 2);
    CHECK(whole_weight(300.0f, 1) == 127);
    CHECK(whole_weight(-300.0f, 1) == -127);
    CHECK(whole_weight(0.25f, 0.1f) == 2);
    CHECK(weight_scales(std::vector<float>{127, -254, 0, 0}, 2) == std::vector<float>{2, 1});
}

TEST_CASE("an input's scale has no zero in its middle where nothing is negative, and cuts off what costs more than it gives", "[unit]") {
    CHECK(int8_input_scale(std::vector<float>{0, 51, 255}).values == std::vector<float>{1, 0});
    CHECK(int8_input_scale(std::vector<float>{-127, 0, 64}).values == std::vector<float>{1, 128});
    std::vector<float> mostly_small(20000);
    for (std::size_t i = 0; i < mostly_small.size(); ++i) mostly_small[i] = static_cast<float>(i % 100) / 100;
    mostly_small.push_back(1.6f);
    CHECK(int8_input_scale(mostly_small).values[0] < 1.6f / 255);
    CHECK(int8_input_scale(std::vector<float>{0, 1e-42f}).values == std::vector<float>{1, 0});  // a denormal is no scale
    CHECK_THROWS_WITH(int8_input_scale(std::vector<float>{0, std::numeric_limits<float>::quiet_NaN()}), Catch::Contains("not finite"));
    CHECK_THROWS_WITH(int8_input_scale(std::vector<float>{std::numeric_limits<float>::infinity()}), Catch::Contains("not finite"));
}

TEST_CASE("a network in int8 gives nearly the outputs of float32", "[flow]") {
    Model model = two_convolutions();
    const Weights weights = calibrated(model);
    CHECK(weights.at(int8_scales_name("first")).values[1] == 128);
    CHECK(weights.at(int8_scales_name("second")).values[1] == 0);
    const RoundingError e = rounding_error(model.graph, weights, {}, with_dots(), images(model.graph, 1));
    CHECK(e.sites == 2);
    CHECK(e.largest > 0);
    CHECK(e.largest < 0.05);
}

TEST_CASE("as many sites are rounded as the limit allows, and the least sensitive ones", "[flow]") {
    Model model = two_convolutions();
    const Weights weights = calibrated(model);
    const auto inputs = images(model.graph, 1);
    const RoundedSites all = round_within(1, model.graph, weights, with_dots(), inputs), none = round_within(0, model.graph, weights, with_dots(), inputs);
    CHECK(all.kinds == std::map<std::string, std::string>{{"first", "int8"}, {"second", "int8"}});
    CHECK(all.kept.empty());
    CHECK(none.kinds.empty());
    CHECK(none.kept.size() == 2);
    CHECK(none.error.largest == 0);
    const RoundedSites some = round_within(all.error.largest * 0.999, model.graph, weights, with_dots(), inputs);
    CHECK(some.kept.size() >= 1);
    CHECK(some.error.largest < all.error.largest);
    for (const auto& [site, nest] : some.kept) CHECK_FALSE(rounds_operands(nest));
}

// Two convolutions as a quantized file has them: inputs and weights are rounded, and the scales are known.
Model quantized_convolutions() {
    GraphBuilder b("quantized");
    const auto rounded = [&](const char* name, const std::string& x, double scale, double zero) {
        return b.node("fake_quantize", name, {x}, {{"scale", scale}, {"zero", zero}, {"low", 0.0}, {"high", 255.0}});
    };
    const std::string x = rounded("bytes", b.input("x", {1, 16, 16, 16}), 0.03125, 128);
    const std::string positive = rounded("more", b.relu("positive", b.conv("first", x, {.out = 32, .kernel = 3, .padding = 1})), 0.03125, 0);
    Model model;
    model.graph = b.finish({b.conv("second", positive, {.out = 32, .kernel = 1})});
    model.weights = initial_weights(model.graph, 3);
    for (const std::string site : {"first", "second"}) {
        Tensor& weight = model.weights.at(site + ".weight");
        const std::vector<float> scales = weight_scales(weight.values, 32);
        for (std::size_t i = 0; i < weight.values.size(); ++i) {
            const float scale = scales[i / (weight.values.size() / 32)];
            weight.values[i] = whole_weight(weight.values[i], scale) * scale;
        }
        Tensor& known = model.weights[int8_scales_name(site)] = {{34}, {0.03125f, site == "first" ? 128.0f : 0.0f}};
        known.values.insert(known.values.end(), scales.begin(), scales.end());
    }
    return model;
}

TEST_CASE("a quantized network computes on int8 units what its roundings say, with the scales of its file", "[flow]") {
    Model model = quantized_convolutions();
    const auto inputs = images(model.graph, 1);
    const RoundedSites both = round_within(0.01, model.graph, model.weights, with_dots(), inputs);
    CHECK(both.kinds == std::map<std::string, std::string>{{"first", "int8"}, {"second", "int8"}});
    CHECK(both.error.mean < 1e-4);                    // at most a value that lies between two numbers goes to the other one
    model.weights.erase(int8_scales_name("second"));  // what has no scales stays in float32
    const RoundedSites one = round_within(0.01, model.graph, model.weights, with_dots(), inputs);
    CHECK(one.kinds == std::map<std::string, std::string>{{"first", "int8"}});
    CHECK(one.kept.contains("second"));
}

TEST_CASE("int8 sites without scales, with wrong ones, or with weights that are not finite are refused", "[errors]") {
    Model model = two_convolutions();
    CHECK_THROWS_WITH(compile(model, model.weights), Catch::Contains("site 'first' multiplies int8 numbers") && Catch::Contains("--data"));
    CHECK_THROWS_WITH(int8_scales(model.graph, model.weights, {}), Catch::Contains("measured on data"));
    Weights wrong = calibrated(model);
    for (const float scale : {0.0f, -1.0f, 1e-42f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        wrong.at(int8_scales_name("first")).values[0] = scale;
        CHECK_THROWS_WITH(compile(model, wrong), Catch::Contains("site 'first': the scale of int8 inputs is"));
    }
    wrong = calibrated(model);
    wrong.at(int8_scales_name("first")).values[1] = 300;
    CHECK_THROWS_WITH(compile(model, wrong), Catch::Contains("expected a scale above 0 and a zero from 0 to 255"));
    wrong = calibrated(model);
    wrong.at("first.weight").values[5] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH(compile(model, wrong), Catch::Contains("site 'first' has weights that are not finite"));
}
