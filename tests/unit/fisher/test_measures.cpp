// Each measure on a network small enough to be worked out by hand.
#include <catch2/catch.hpp>

#include <cmath>

#include "fisher/conditions.hpp"
#include "fisher/measures.hpp"
#include "graph/builder.hpp"
#include "graph/onnx/evaluate/opaque_text.hpp"
#include "graph/weights.hpp"

using namespace loopegg;

namespace {

// logits = w x, no bias.
Graph one_conv(std::int64_t n, std::int64_t in, std::int64_t out) {
    GraphBuilder b("one");
    std::string x = b.input("x", {n, in, 1, 1});
    return b.finish({b.node("flatten", "flat", {b.conv("c", x, {.out = out, .kernel = 1})})});
}

struct ByHand {
    std::vector<std::vector<double>> logits, gradient;  // of the mean cross-entropy, by image and class
};

ByHand softmax_network(const std::vector<float>& w, const Batch& batch, std::size_t in, std::size_t out) {
    ByHand h;
    std::size_t n = batch.labels.size();
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> logits(out, 0.0);
        for (std::size_t c = 0; c < out; ++c)
            for (std::size_t k = 0; k < in; ++k) logits[c] += static_cast<double>(w[c * in + k]) * static_cast<double>(batch.images[i * in + k]);
        double sum = 0;
        for (double l : logits) sum += std::exp(l);
        std::vector<double> g;
        for (std::size_t c = 0; c < out; ++c)
            g.push_back((std::exp(logits[c]) / sum - (static_cast<std::int64_t>(c) == batch.labels[i])) / static_cast<double>(n));
        h.logits.push_back(logits), h.gradient.push_back(g);
    }
    return h;
}

const Batch batch{{3, 2, 1, 1}, {1.0f, -0.5f, 0.25f, 2.0f, -1.0f, 0.75f}, {0, 2, 1}};
const std::vector<float> w{0.5f, -1.0f, 0.25f, 0.75f, -0.5f, 1.5f};

}  // namespace

TEST_CASE("fisher, snip and grad-norm follow their formulas", "[unit][fisher]") {
    Graph graph = one_conv(3, 2, 3);
    RawScores raw = torch_runtime().score_weights(graph, {{"c.weight", {{3, 2, 1, 1}, w}}}, batch, {true, false, true, false}, true);
    ByHand h = softmax_network(w, batch, 2, 3);
    double fisher = 0, snip = 0, square = 0;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t c = 0; c < 3; ++c) fisher += std::pow(h.logits[i][c] * h.gradient[i][c], 2) / (2 * 3.0);
    for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t k = 0; k < 2; ++k) {
            double g = 0;
            for (std::size_t i = 0; i < 3; ++i) g += h.gradient[i][c] * static_cast<double>(batch.images[i * 2 + k]);
            snip += std::abs(static_cast<double>(w[c * 2 + k]) * g);
            square += g * g;
        }
    REQUIRE(raw.fisher.size() == 1);
    CHECK(raw.fisher[0].first == "c");
    CHECK(raw.fisher[0].second == Approx(fisher).epsilon(1e-9));
    CHECK(raw.snip == Approx(snip).epsilon(1e-9));
    CHECK(raw.grad_norm == Approx(std::sqrt(square)).epsilon(1e-9));
}

TEST_CASE("naswot is the log determinant of agreeing codes", "[unit][fisher]") {
    GraphBuilder b("codes");
    std::string x = b.input("x", {2, 4});
    Graph graph = b.finish({b.linear("fc", b.relu("r", x), 2)});
    Weights weights{{"fc.weight", {{2, 4}, std::vector<float>(8, 0.1f)}}, {"fc.bias", {{2}, {0, 0}}}};
    // Codes 1010 and 1100 agree in two places of four: K = [[4, 2], [2, 4]].
    RawScores raw = torch_runtime().score_weights(graph, weights, {{2, 4}, {1, -1, 1, -1, 1, 1, -1, -1}, {0, 1}}, {false, true, false, false}, false);
    CHECK(raw.naswot == Approx(std::log(12.0)));
    // Units that are the same for both images tell nothing apart: of the four, the first and the last.
    CHECK(raw.code_spread == Approx(0).margin(1e-9));
    // Here the first alone: three units, of which the codes 010 and 100 share one.
    raw = torch_runtime().score_weights(graph, weights, {{2, 4}, {0, -1, 1, -1, 0, 1, -1, -1.5f}, {0, 1}}, {false, true, false, false}, false);
    CHECK(raw.code_spread == Approx(std::log((9.0 - 1.0) / 9) / 2));
}

TEST_CASE("synflow of a chain is the logarithm of layers times flow", "[unit][fisher]") {
    GraphBuilder b("chain");
    std::string x = b.input("x", {1, 2});
    std::string hidden = b.node("linear", "a", {x}, {{"out_features", std::int64_t{2}}, {"bias", false}});
    Graph graph = b.finish({b.node("linear", "b", {hidden}, {{"out_features", std::int64_t{1}}, {"bias", false}})});
    Weights weights{{"a.weight", {{2, 2}, {1, -2, 3, 4}}}, {"b.weight", {{1, 2}, {-1, 2}}}};
    // |W| applied to ones: (3, 7), then 3 + 14 = 17; sum |w dR/dw| of each layer is R itself.
    RawScores raw = torch_runtime().score_weights(graph, weights, {{1, 2}, {0, 0}, {0}}, {false, false, false, true}, false);
    CHECK(raw.synflow == Approx(std::log(2 * 17.0)));
}

TEST_CASE("sizes and ratios", "[unit][fisher]") {
    MeasureInput a{{}, 100, 1000}, b{{}, 50, 250};
    a.raw.fisher = {{"x", 1.0}, {"y", 3.0}}, b.raw.fisher = {{"x", 2.0}, {"y", 1.5}};
    a.raw.naswot = 10, b.raw.naswot = 9;
    auto ratio = [&](const char* name) { return ratio_of(find_measure(name), find_measure(name).value(a), find_measure(name).value(b)); };
    CHECK(ratio("params") == 0.5);
    CHECK(ratio("macs") == 0.25);
    CHECK(ratio("fisher") == Approx(3.5 / 4));
    CHECK(ratio("fisher-layer") == Approx(std::sqrt(2.0 * 0.5)));
    CHECK(ratio("naswot") == Approx(std::exp(-1.0)));
    // Means of the layers' fisher: geometric sqrt(3), arithmetic 2; then sqrt(3), 1.75.
    a.raw.images = b.raw.images = 5, a.raw.synflow = 3, b.raw.synflow = 1;
    CHECK(find_measure("ensemble").value(a) == Approx(10 / 5.0 + 0.5 * std::log(std::sqrt(3.0) / 2) + 0.05 * 3 + std::log(1000.0)));
    CHECK(ratio("ensemble") == Approx(std::exp(-0.2 + 0.5 * std::log(2 / 1.75) - 0.1 + std::log(0.25))));
    for (const Measure& m : measures()) CHECK(&find_measure(m.name) == &m);
}

TEST_CASE("ranks, correlation, area and interval", "[unit][fisher]") {
    CHECK(ranks(std::vector<double>{5, 1, 3}) == std::vector<double>{1, 0, 0.5});
    CHECK(ranks(std::vector<double>{2, 2, 9}) == std::vector<double>{0.25, 0.25, 1});
    CHECK(spearman(std::vector<double>{1, 2, 3, 4}, std::vector<double>{10, 20, 30, 45}) == Approx(1));
    CHECK(spearman(std::vector<double>{1, 2, 3, 4}, std::vector<double>{4, 3, 2, 1}) == Approx(-1));
    CHECK(spearman(std::vector<double>{1, 2, 3, 4, 5}, std::vector<double>{2, 1, 4, 3, 5}) == Approx(0.8));
    CHECK(area_under_curve(std::vector<double>{3, 4}, std::vector<double>{1, 2}) == 1);
    CHECK(area_under_curve(std::vector<double>{1, 4}, std::vector<double>{2, 4}) == Approx(0.375));
    Interval i = interval_of(std::vector<double>{1, 2, 3});
    CHECK(i.mean == 2);
    CHECK(i.half == Approx(2.920 / std::sqrt(3.0)));
    CHECK(std::isinf(interval_of(std::vector<double>{1}).half));
}

TEST_CASE("measures on both sides of the original", "[unit][fisher]") {
    auto pair = [](double first, double second, double macs) {
        ScoredPair p;
        p.original = {{}, 1, 2, {{"x", 1}, {"y", 1}}}, p.variant = {{}, 1, 1 + macs, {{"x", 1}, {"y", macs}}};
        p.original.raw.fisher = {{"x", 1.0}, {"y", 1.0}}, p.variant.raw.fisher = {{"x", first}, {"y", second}};
        for (MeasureInput* m : {&p.original, &p.variant}) m->raw.code_spread = -0.5;
        return p;
    };
    const ComparedMeasure &band = compared_measure("fisher-band"), &paper = compared_measure("fisher");
    auto kept = [](const ComparedMeasure& measure, const ScoredPair& p) { return measure.compare({&p, 1}).value; };
    CHECK(kept(band, pair(1, 1, 1)) == 1);
    CHECK(kept(band, pair(3, 3, 1)) == Approx(kept(band, pair(1 / 3.0, 1 / 3.0, 1))));  // inflated is as bad as collapsed
    CHECK(kept(band, pair(1, 1, 0.1)) < 1);
    CHECK(band.compare(std::vector{pair(1.5, 0.5, 1)}).parts["layers"].get<double>() > 0);  // layers do not cancel out
    CHECK(kept(paper, pair(3, 3, 1)) == Approx(3));
    CHECK(kept(paper, pair(0.5, 0.5, 1)) == Approx(0.5));
    // Seeds that err in opposite directions do.
    std::vector<ScoredPair> seeds{pair(2, 2, 1), pair(0.5, 0.5, 1)};
    CHECK(band.compare(seeds).value == Approx(1));
    ScoredPair dull = pair(1, 1, 1), sharp = dull;
    dull.variant.raw.code_spread -= 0.1, sharp.variant.raw.code_spread += 0.1;
    CHECK(kept(band, dull) < 1);
    CHECK(kept(band, sharp) == 1);
    // Work that is left out counts by stage: half of one stage's work is log 2, by its part of the whole.
    ScoredPair staged = pair(1, 1, 1);
    staged.original.sites = {{"a", 30, 64}, {"b", 10, 64}, {"c", 60, 16}}, staged.variant.sites = {{"a", 10, 64}, {"b", 10, 64}, {"c", 60, 16}};
    CHECK(band.compare({&staged, 1}).parts["stages"].get<double>() == Approx(std::sqrt(0.4) * std::log(2)));
    staged.variant.sites[2].macs = 30;
    CHECK(band.compare({&staged, 1}).parts["stages"].get<double>() == Approx(std::log(2)));
    staged.variant.sites = {{"a", 30, 64}, {"b", 10, 64}, {"c", 600, 16}};  // more work than before is no loss, and makes up for none
    CHECK(band.compare({&staged, 1}).parts["stages"].get<double>() == 0);
    // The same cut in one place costs more than spread over the network.
    ScoredPair narrow = staged, even = staged;
    narrow.variant.sites = {{"a", 3, 64}, {"b", 1, 64}, {"c", 60, 16}}, even.variant.sites = {{"a", 19.2, 64}, {"b", 6.4, 64}, {"c", 38.4, 16}};
    CHECK(kept(band, narrow) < kept(band, even));
    // Parameters that are gone cost something whatever they computed; more than before make up for nothing.
    ScoredPair small = pair(1, 1, 1), large = small;
    small.variant.params = 0.25, large.variant.params = 4;
    CHECK(-std::log(kept(band, small)) == Approx(0.1 * std::log(4)));
    CHECK(kept(band, large) == 1);
}

namespace {

// Two convolutions and a classifier. With its batch written into it, the network takes `rows` images and no other number; with 0, any number.
Graph classifier(std::int64_t rows, std::int64_t own) {
    GraphBuilder b("classifier");
    std::string x = b.relu("relu1", b.conv("conv1", b.input("x", {own, 3, 6, 6}), {.out = 4, .kernel = 3, .bias = true}));
    x = b.relu("relu2", b.conv("conv2", x, {.out = 6, .kernel = 3, .bias = true}));
    return b.finish({b.linear("fc", b.node("reshape", "flat", {x}, {{"shape", std::vector<std::int64_t>{rows, 24}}}), 5)});
}

Batch drawn_batch(std::int64_t n) {
    Batch batch{{n, 3, 6, 6}, normal_tensor({n, 3, 6, 6}, 3, "images").values, {}};
    for (std::int64_t i = 0; i < n; ++i) batch.labels.push_back(i % 5);
    return batch;
}

}  // namespace

TEST_CASE("a network that takes fewer images than a batch holds is shown them in turns, and scores the same", "[unit][fisher]") {
    const Weights weights = initial_weights(classifier(0, 1), 1);
    const Batch batch = drawn_batch(8);
    const RawScores all = torch_runtime().score_weights(classifier(0, 1), weights, batch, {true, true, true, true}, true);
    for (std::int64_t own : {1, 2, 4}) {
        const RawScores turns = torch_runtime().score_weights(classifier(own, own), weights, batch, {true, true, true, true}, true);
        CHECK(turns.images == 8);
        CHECK(turns.loss == Approx(all.loss));
        CHECK(turns.naswot == Approx(all.naswot));
        CHECK(turns.code_spread == Approx(all.code_spread));
        CHECK(turns.snip == Approx(all.snip));
        CHECK(turns.grad_norm == Approx(all.grad_norm));
        CHECK(turns.synflow == Approx(all.synflow));
        REQUIRE(turns.fisher.size() == all.fisher.size());
        for (std::size_t i = 0; i < all.fisher.size(); ++i) {
            CHECK(turns.fisher[i].first == all.fisher[i].first);
            CHECK(turns.fisher[i].second == Approx(all.fisher[i].second));
        }
        REQUIRE(turns.codes.size() == all.codes.size());
        for (std::size_t i = 0; i < all.codes.size(); ++i) CHECK(turns.codes[i].second == Approx(all.codes[i].second));
    }
    CHECK_THROWS_WITH(torch_runtime().score_weights(classifier(3, 3), weights, batch, {}, true), Catch::Contains("takes 3 images at a time, and 8 are"));
}

namespace {

// A convolution, one operator that is run as it stands, and a classifier.
Graph with_operator(OnnxNode node, std::vector<OpaqueNode::Input> constants = {}) {
    OpaqueNode opaque{std::move(node), 18, {{.from = 0}}};
    for (OpaqueNode::Input& c : constants) opaque.inputs.push_back(std::move(c));
    GraphBuilder b("opaque");
    std::string x = b.relu("relu", b.conv("conv", b.input("x", {1, 3, 6, 6}), {.out = 4, .kernel = 3}));
    x = b.node("onnx", "as it stands", {x}, {{"node", write_opaque(opaque)}, {"output", std::int64_t{0}}});
    return b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {x})}), 5)});
}

}  // namespace

TEST_CASE("a derivative passes operators that only move values", "[unit][fisher]") {
    GraphBuilder b("plain");
    std::string x = b.relu("relu", b.conv("conv", b.input("x", {1, 3, 6, 6}), {.out = 4, .kernel = 3}));
    const Graph plain = b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {x})}), 5)});
    const std::vector<std::int64_t> order{2, 0, 3, 1};
    const Graph moved = with_operator({"Gather", "g", {"x", "i"}, {"y"}, {{"axis", std::int64_t{1}}}},
                                      {{.from = -1, .type = 7, .constant = {OnnxTensor::Kind::int64, {4}, {}, {}, order}}});
    // The classifier reads the channels where they are now.
    Weights weights = initial_weights(plain, 1), other = weights;
    for (std::size_t row = 0; row < 5; ++row)
        for (std::size_t c = 0; c < 4; ++c) other["fc.weight"].values[row * 4 + c] = weights["fc.weight"].values[row * 4 + static_cast<std::size_t>(order[c])];
    const RawScores wanted = torch_runtime().score_weights(plain, weights, drawn_batch(8), {}, true);
    const RawScores got = torch_runtime().score_weights(moved, other, drawn_batch(8), {}, true);
    REQUIRE(got.fisher.size() == 1);
    CHECK(got.fisher[0].second > 0);
    CHECK(got.fisher[0].second == Approx(wanted.fisher[0].second));
}

TEST_CASE("where no derivative reaches the layers, the guard says so and names the operator", "[errors][fisher]") {
    const Graph graph = with_operator({"Cosh", "c", {"x"}, {"y"}});
    CHECK_THROWS_WITH(torch_runtime().score_weights(graph, initial_weights(graph, 1), drawn_batch(8), {}, true),
                      Catch::Contains("no derivative reaches its layers") && Catch::Contains("Cosh") && Catch::Contains("--rules exact"));
}

TEST_CASE("every measure that rules may name is computed, and no other", "[unit]") {
    for (const MeasureKind& kind : measure_kinds()) CHECK(compared_measure(kind.name).by_size.operator bool() >= kind.of_sizes);
    for (const ComparedMeasure& measure : compared_measures()) CHECK(find_measure_kind(measure.name) != nullptr);
}
