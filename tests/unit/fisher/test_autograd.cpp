// Fisher by layer against plain PyTorch: tests/data/fisher/reference.json, made by the script beside it.
#include <catch2/catch.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/source.hpp"
#include "fisher/engine.hpp"
#include "graph/carry_weights.hpp"
#include "graph/operators.hpp"
#include "graph/zoo/zoo.hpp"
#include "rewrite/plan_rules.hpp"

using namespace loopegg;

namespace {

// As in make_reference.py.
std::vector<float> uniform(const std::string& name, std::int64_t count, float scale) {
    std::uint64_t h = 0xcbf29ce484222325ull;
    for (unsigned char byte : name) h = (h ^ byte) * 0x100000001b3ull;
    std::vector<float> values;
    for (std::int64_t i = 1; i <= count; ++i) {
        std::uint64_t z = h + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        values.push_back(static_cast<float>(static_cast<double>(z >> 40) / 8388608.0 - 1) * scale);
    }
    return values;
}

Weights reference_weights(const Graph& graph) {
    Weights weights;
    for (const Node& node : graph.nodes)
        for (const Parameter& p : parameters_of(node)) {
            std::int64_t count = element_count(p.shape);
            bool site = (node.op == "conv2d" || node.op == "linear") && p.name.ends_with(".weight");
            if (site)
                weights[p.name] = {p.shape,
                                   uniform(p.name, count, static_cast<float>(std::sqrt(6.0 * static_cast<double>(p.shape[0]) / static_cast<double>(count))))};
            else
                weights[p.name] = {p.shape,
                                   std::vector<float>(static_cast<std::size_t>(count), p.name.ends_with(".weight") || p.name.ends_with("_var") ? 1.0f : 0.0f)};
        }
    return weights;
}

Graph variant(const Graph& original, const std::string& kind) {
    if (kind == "original") return original;
    std::string apply = kind == "group4"      ? R"x({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 4}})x"
                        : kind == "depthwise" ? R"x({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": "(extent ci)"}})x"
                        : kind == "repeat2"   ? R"x({"rule": "bottleneck-axis", "with": {"?a": "co", "?k": 2}, "restore": "repeat"})x"
                                              : R"x({"rule": "group-axes", "with": {"?a": "(quo oh (/ (extent oh) 2))", "?b": "ci", "?g": 2}})x";
    return apply_plan(original, read_plan(make_source("plan", R"({"steps": [{"site": "layer*.*.conv?", "apply": [)" + apply + "]}]}")), shipped_plan_rules());
}

}  // namespace

TEST_CASE("every layer's Fisher is what autograd gives in Python", "[unit][fisher]") {
    nlohmann::json reference = nlohmann::json::parse(read_file(std::string(LOOPEGG_SOURCE) + "/tests/data/fisher/reference.json"));
    Graph original = zoo_graph("resnet34-cifar10");
    Weights weights = reference_weights(original);
    Batch batch{{16, 3, 32, 32}, uniform("images", 16 * 3072, 2.0f), {}};
    for (std::int64_t i = 0; i < 16; ++i) batch.labels.push_back(i % 10);
    for (const auto& [kind, expected] : reference.items()) {
        INFO(kind);
        Graph graph = variant(original, kind);
        Weights own = carry_weights(original, weights, graph);
        for (bool exact : {true, false}) {
            INFO((exact ? "64-bit floats" : "32-bit floats"));
            RawScores got = torch_runtime().score_weights(graph, own, batch, {true, false, false, false}, exact);
            CHECK(got.loss == Approx(expected["loss"].get<double>()).epsilon(exact ? 1e-9 : 1e-4));
            REQUIRE(got.fisher.size() == expected["layers"].size());
            double worst = 0;
            for (const auto& [name, score] : got.fisher) {
                REQUIRE(expected["layers"].contains(name));
                double should = expected["layers"][name].get<double>();
                worst = std::max(worst, std::abs(score - should) / should);
            }
            // Sums over 32-bit activations themselves differ from 64-bit ones by up to a part in a thousand.
            CHECK(worst < (exact ? 1e-6 : 5e-3));
        }
    }
}
