#include <catch2/catch.hpp>

#include <unistd.h>
#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "graph/builder.hpp"
#include "graph/floats.hpp"
#include "graph/load.hpp"
#include "graph/npy.hpp"
#include "graph/operators.hpp"
#include "graph/safetensors.hpp"
#include "graph/weights.hpp"

using namespace loopegg;

namespace {

Graph two_convs(std::int64_t groups) {
    GraphBuilder b("g");
    std::string x = b.conv("a", b.input("x", {1, 64, 8, 8}), {.out = 64, .kernel = 3, .padding = 1, .groups = groups});
    return b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {b.norm("bn", x)})}), 10)});
}

double deviation(const Tensor& t) {
    double sum = 0;
    for (float v : t.values) sum += double{v} * v;
    return std::sqrt(sum / static_cast<double>(t.values.size()));
}

}  // namespace

TEST_CASE("initial weights follow fan-in and groups, and never change", "[unit][graph]") {
    Weights dense = initial_weights(two_convs(1), 1), grouped = initial_weights(two_convs(4), 1);
    CHECK(deviation(dense.at("a.weight")) == Approx(std::sqrt(2.0 / (64 * 9))).epsilon(0.02));
    CHECK(deviation(grouped.at("a.weight")) == Approx(std::sqrt(2.0 / (16 * 9))).epsilon(0.02));
    CHECK(dense.at("bn.weight").values[0] == 1);
    CHECK(dense.at("bn.running_var").values[63] == 1);
    CHECK(dense.at("fc.bias").values[3] == 0);
    CHECK(initial_weights(two_convs(1), 1) == dense);
    CHECK_FALSE(initial_weights(two_convs(1), 2) == dense);
    // The bytes that every machine must draw.
    CHECK(hash_of(write_safetensors(dense)).hex() == "26fcefba86dfd4a4014c9279cc34379f");
}

TEST_CASE("a domain makes fan-in smaller as the same groups do", "[unit][graph]") {
    Graph g = two_convs(1);
    g.nodes[0].domain.parts = {DomainPart{{}, {{{"co", 16, 4}, {"ci", 16, 4}}}}};
    complete(g);
    CHECK(deviation(initial_weights(g, 1).at("a.weight")) == Approx(std::sqrt(2.0 / (16 * 9))).epsilon(0.02));
}

TEST_CASE("safetensors round trip", "[unit][graph]") {
    Weights w = initial_weights(two_convs(2), 3);
    CHECK(parse_safetensors("w", write_safetensors(w)) == w);
    CHECK(parse_safetensors("w", write_safetensors({})).empty());
}

TEST_CASE("narrow floats are widened, counters left out", "[unit][graph]") {
    std::string header = R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},)"
                         R"("n":{"dtype":"I64","shape":[],"data_offsets":[6,14]},"__metadata__":{"format":"pt"}})";
    std::uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char*>(&length), 8);
    bytes += header + std::string("\x00\x3c\x01\x00\x80\x3f", 6) + std::string(8, '\0');
    Weights w = parse_safetensors("w", bytes);
    CHECK(w.at("h").values == std::vector<float>{1.0f, 0x1p-24f});
    CHECK(w.at("b").values == std::vector<float>{1.0f});
    CHECK(w.size() == 2);
    CHECK(from_half(0xC000) == -2.0f);
    CHECK(std::isinf(from_half(0x7C00)));
}

TEST_CASE("npy round trip", "[unit][graph]") {
    for (Shape shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{1, 2, 3, 4}}) {
        Tensor t = normal_tensor(shape, 1, "t");
        std::string bytes = write_npy(t);
        CHECK(parse_npy("t", bytes) == t);
        CHECK((bytes.size() - t.values.size() * 4) % 64 == 0);
    }
    CHECK_THROWS_AS(parse_npy("t", "\x93NUMPY"), UserError);
    CHECK_THROWS_AS(parse_npy("t", "no"), UserError);
    std::string cut = write_npy(normal_tensor({4}, 1, "t"));
    cut.pop_back();
    CHECK_THROWS_AS(parse_npy("t", cut), UserError);
}

TEST_CASE("a model and its weights are saved and loaded", "[unit][graph]") {
    std::filesystem::path folder = std::filesystem::temp_directory_path() / ("loopegg-test-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    Graph g = two_convs(2);
    Weights w = initial_weights(g, 9);
    save_model(g, w, folder / "m.json");
    Model loaded = load_model((folder / "m.json").string());
    CHECK(loaded.weights == w);
    CHECK(loaded.graph.nodes == g.nodes);
    CHECK(brings_weights((folder / "m.json").string(), loaded.graph));
    w.erase("bn.bias");
    w["a.weight"].shape = {1};
    write_file(folder / "m.safetensors", write_safetensors({{"a.weigth", {{1}, {0}}}}));
    CHECK_THROWS_WITH(load_model((folder / "m.json").string()),
                      Catch::Contains("has no tensor 'a.weight' that node 'a' needs") && Catch::Contains("did you mean 'a.weigth'?"));
    std::filesystem::remove_all(folder);
}

TEST_CASE("an ONNX file brings its weights, and a network that names none does not", "[unit][graph]") {
    CHECK(brings_weights("m.onnx", {}));
    CHECK_FALSE(brings_weights("m.json", two_convs(2)));
    CHECK_FALSE(brings_weights("zoo:resnet18", two_convs(2)));
}
