// Networks whose products are of int8 numbers: the scales of their inputs, what they compute, and what is refused.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "backends/network/int8_calibration.hpp"
#include "backends/network/rounding_error.hpp"
#include "backends/target/target_rules.hpp"
#include "base/json.hpp"
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
    KernelCache kernels;
    const RoundingError e = rounding_error({model.graph, weights, {}}, with_dots(), {images(model.graph, 1)}, kernels);
    CHECK(e.sites == 2);
    CHECK(e.largest > 0);
    CHECK(e.largest < 0.05);
}

TEST_CASE("as many sites are rounded as the limits allow, and the least sensitive ones", "[flow]") {
    Model model = two_convolutions();
    const Weights weights = calibrated(model);
    JudgedInputs judged{images(model.graph, 1)};
    KernelCache kernels;
    const auto within = [&](const RoundingLimits& limits) { return round_within(limits, {model.graph, weights, {}}, with_dots(), judged, kernels); };
    const RoundedSites all = within({1, {}}), none = within({0, {}});
    CHECK(all.error.sites == 2);
    CHECK(all.wide().empty());
    CHECK(none.wide() == std::set<std::string>{"first", "second"});
    CHECK(none.error.largest == 0);
    CHECK(none.all.largest == all.error.largest);
    for (const RoundedSites& of : {all, none})
        for (const auto& [site, r] : of.sites) {
            CHECK(r.kind == "int8");
            CHECK(r.alone > 0);
        }
    const RoundedSites some = within({all.error.largest * 0.999, {}});
    REQUIRE_FALSE(some.wide().empty());
    CHECK(some.error.largest < all.error.largest);
    const Schedules mixed = in_float32(some.wide(), model.graph, {}, with_dots());
    for (const auto& [site, nest] : mixed) CHECK(rounds_operands(nest) == !some.wide().contains(site));
    CHECK(mixed.size() == 2);
    CHECK(rounding_error({model.graph, weights, mixed}, with_dots(), judged, kernels).largest == some.error.largest);
    // Points: with labels, answers that were right and are wrong; without, all that change.
    const std::size_t outputs = static_cast<std::size_t>(all.error.outputs);
    judged.labels.assign(outputs, 31);
    const RoundingError labelled = within({1, {}}).error;
    CHECK(labelled.lost + labelled.won <= labelled.outputs - labelled.same_answer);
    CHECK(all.error.lost == all.error.outputs - all.error.same_answer);
    CHECK(all.error.won == 0);
    CHECK(all.error.points() == Approx(100.0 * all.error.lost / static_cast<double>(outputs)));
    CHECK(all.error.uncertainty() > 0);
    judged.labels.clear();
    CHECK(within({1, all.error.points()}).wide().empty());
    if (all.error.lost > 0) CHECK(within({1, all.error.points() * 0.99}).error.points() < all.error.points());
}

TEST_CASE("scales are of data with a range of finite numbers, and network.json keeps them for other weights", "[errors]") {
    Model model = two_convolutions();
    auto same = images(model.graph, 100);
    for (auto& one : same) std::fill(one[0].values.begin(), one[0].values.end(), 0.5f);
    CHECK_THROWS_WITH(int8_scales(model.graph, model.weights, same), Catch::Contains("'x' is 0.5 throughout the data"));
    auto broken = images(model.graph, 100);
    broken[1][0].values[7] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH(int8_scales(model.graph, model.weights, broken), Catch::Contains("'x' has values that are not finite"));
    Weights dead = model.weights;
    for (float& w : dead.at("first.weight").values) w = 0;
    CHECK_THROWS_WITH(int8_scales(model.graph, dead, images(model.graph, 100)), Catch::Contains("'positive' is 0 throughout the data"));

    const Weights weights = calibrated(model);
    const JsonView kept = read_json(make_source("network.json", nlohmann::json{{"int8", int8_scales_json(weights)}}.dump()));
    CHECK(has_int8_scales(kept));
    CHECK_FALSE(without_int8_scales(weights).contains(int8_scales_name("first")));
    const Weights again = with_int8_scales(without_int8_scales(weights), kept);
    for (const char* site : {"first", "second"}) CHECK(again.at(int8_scales_name(site)).values == weights.at(int8_scales_name(site)).values);
    const JsonView cut = read_json(make_source("network.json", R"({"int8": {"first": [0.5]}})"));
    CHECK_THROWS_WITH(with_int8_scales(model.weights, cut), Catch::Contains("network.json:1:") && Catch::Contains("the scale and the zero"));
}

TEST_CASE("sums that may need more than 32 bits are refused", "[errors]") {
    GraphBuilder b("long");
    Model model;
    model.graph = b.finish({b.linear("fc", b.input("x", {16, 81920}), 16)});
    Schedules schedules;
    for (const Term& t : schedule_rules(with_dots())->schedules(fused_nests(model.graph, {}, find_target("host")).at("fc"), 96))
        if (rounds_operands(t)) schedules.try_emplace("fc", t);
    REQUIRE(schedules.contains("fc"));
    CHECK_THROWS_WITH(compile_nest(schedules.at("fc"), with_dots(), "k"),
                      Catch::Contains("a sum of 81920 products of int8 numbers may need more than 32 bits"));
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
    for (const std::size_t channels : {31u, 33u}) {
        wrong = calibrated(model);
        wrong.at(int8_scales_name("first")).values.resize(2 + channels, 1.0f);
        CHECK_THROWS_WITH(compile(model, wrong), Catch::Contains("site 'first': the ") && Catch::Contains("are not 32 numbers above 0"));
    }
    wrong = calibrated(model);
    wrong.at(int8_scales_name("first")).values.resize(2 + 32, 0.0f);
    CHECK_THROWS_WITH(compile(model, wrong), Catch::Contains("are not 32 numbers above 0"));
    wrong = calibrated(model);
    wrong.at("first.weight").values[5] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH(compile(model, wrong), Catch::Contains("site 'first' has weights that are not finite"));
}
