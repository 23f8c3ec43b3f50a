// Fisher Potential by channel against its formula, and who chooses the channels when weights or data are missing or do not fit together.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "base/scratch.hpp"
#include "fisher/engine.hpp"
#include "fisher/importance.hpp"
#include "graph/builder.hpp"
#include "graph/carry_weights.hpp"
#include "graph/npy.hpp"
#include "graph/weights.hpp"

using namespace loopegg;

namespace {

// logits = sum over places of a normed 1x1 convolution: every derivative can be written down.
Graph normed_classifier(std::int64_t n) {
    GraphBuilder b("one");
    std::string x = b.norm("bn", b.conv("c", b.input("x", {n, 2, 1, 2}), {.out = 3, .kernel = 1}));
    return b.finish({b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {x})})});
}

}  // namespace

TEST_CASE("the Fisher Potential of a channel follows its formula, image by image", "[unit][fisher]") {
    const Graph graph = normed_classifier(1);
    Weights weights = initial_weights(graph, 1);
    weights["bn.weight"].values = {2, -1, 0.5f}, weights["bn.bias"].values = {0.5f, 0, -1};
    weights["bn.running_mean"].values = {0.25f, -0.5f, 0}, weights["bn.running_var"].values = {4, 1, 0.25f};
    const std::int64_t images = 37;  // a whole number of turns and a rest
    const Tensor drawn = normal_tensor({images, 2, 1, 2}, 5, "images");
    Batch batch{drawn.shape, drawn.values, {}};
    for (std::int64_t i = 0; i < images; ++i) batch.labels.push_back(i % 3);
    const ChannelFisher score = torch_runtime().channel_fisher(graph, weights, batch, 1);
    CHECK(score.images == images);

    const float* w = weights.at("c.weight").values.data();
    struct Shown {
        double error = 0, square[3]{};
    };
    std::vector<Shown> shown;
    std::int64_t right = 0;
    for (std::size_t n = 0; n < static_cast<std::size_t>(images); ++n) {
        double value[3][2], logits[3], sum = 0;
        for (std::size_t c = 0; c < 3; ++c) {
            for (std::size_t p = 0; p < 2; ++p) {
                const double conv = double{w[2 * c]} * batch.images[4 * n + p] + double{w[2 * c + 1]} * batch.images[4 * n + 2 + p];
                const double deviation = std::sqrt(double{weights.at("bn.running_var").values[c]} + graph.find("bn")->real("eps"));
                value[c][p] =
                    (conv - weights.at("bn.running_mean").values[c]) / deviation * weights.at("bn.weight").values[c] + weights.at("bn.bias").values[c];
            }
            logits[c] = (value[c][0] + value[c][1]) / 2, sum += std::exp(logits[c]);
        }
        right += std::max_element(logits, logits + 3) - logits == batch.labels[n];
        Shown one;
        for (std::size_t c = 0; c < 3; ++c) {
            const double error = std::exp(logits[c]) / sum - (static_cast<std::int64_t>(c) == batch.labels[n]);
            one.error += error * error, one.square[c] = std::pow((value[c][0] + value[c][1]) * error / 2, 2);
        }
        shown.push_back(one);
    }
    CHECK(score.right == right);

    // The images with the largest errors, until they hold nine tenths of all errors.
    std::sort(shown.begin(), shown.end(), [](const Shown& a, const Shown& b) { return a.error > b.error; });
    double whole = 0, sum = 0, expected[3]{};
    for (const Shown& s : shown) whole += s.error;
    std::int64_t scored = 0;
    for (; sum < 0.9 * whole; ++scored) {
        const Shown& s = shown[static_cast<std::size_t>(scored)];
        sum += s.error;
        for (std::size_t c = 0; c < 3; ++c) expected[c] += s.square[c] / (2 * static_cast<double>(images));
    }
    CHECK(score.scored == scored);
    CHECK(scored < images);
    REQUIRE(score.by_site.size() == 1);
    for (std::size_t c = 0; c < 3; ++c) CHECK(score.by_site.at("c")[c] == Approx(expected[c]).epsilon(1e-4));
}

TEST_CASE("every site that writes channels is scored, of convolutions and of tokens", "[unit][fisher]") {
    GraphBuilder b("mixed");
    std::string x = b.relu("r", b.conv("a", b.input("x", {2, 3, 4, 4}), {.out = 4, .kernel = 3, .padding = 1}));  // no norm: scored at the site itself
    x = b.conv("depth", x, {.out = 4, .kernel = 3, .padding = 1, .groups = 4});                                   // writes no channels of its own
    Graph graph = b.finish({b.linear("fc", b.node("flatten", "flat", {b.conv("b", x, {.out = 2, .kernel = 1})}), 5)});
    const Tensor images = normal_tensor({6, 3, 4, 4}, 1, "images");
    const ChannelFisher score = torch_runtime().channel_fisher(graph, initial_weights(graph, 2), {images.shape, images.values, {0, 1, 2, 3, 4, 0}}, 1);
    std::vector<std::string> sites;
    for (const auto& [site, values] : score.by_site) {
        sites.push_back(site);
        for (double v : values) CHECK(v >= 0);
    }
    CHECK(sites == std::vector<std::string>{"a", "b", "fc"});
    CHECK(score.by_site.at("a").size() == 4);
    CHECK(score.by_site.at("fc").size() == 5);
}

namespace {

// A folder of images of two classes that a network with the right weights tells apart: the first channel is the class, the second is noise.
struct Scored {
    ScratchFile place{".folder"};
    ScratchFolder folder{place.path()};
    Graph graph;
    Weights weights;

    explicit Scored(bool labels_fit) {
        GraphBuilder b("told");
        std::string hidden = b.relu("r", b.conv("c", b.input("x", {1, 2, 2, 2}), {.out = 4, .kernel = 1}));
        graph = b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {hidden})}), 2)});
        // Channels 1 and 3 answer; channels 0 and 2 have larger weights, but their readers ignore them.
        weights = {{"c.weight", {{4, 2, 1, 1}, {0, 9, 3, 0, 0, 9, -3, 0}}}, {"fc.weight", {{2, 4}, {0, 1, 0, -1, 0, -1, 0, 1}}}, {"fc.bias", {{2}, {0, 0}}}};
        const std::int64_t n = 40;
        Tensor images = normal_tensor({n, 2, 2, 2}, 3, "noise"), labels{{n}, {}};
        for (std::int64_t i = 0; i < n; ++i) {
            const bool first = i % 2 == 0;
            labels.values.push_back(labels_fit ? static_cast<float>(!first) : static_cast<float>((i / 2) % 2));
            for (std::size_t p = 0; p < 4; ++p) images.values[static_cast<std::size_t>(i) * 8 + p] = first ? 0.5f : -0.5f;
        }
        write_scratch(folder.path() / "images.npy", write_npy(images));
        write_scratch(folder.path() / "labels.npy", write_npy(labels));
    }
    Importance importance(bool trained = true) const { return importance_of(graph, trained ? &weights : nullptr, {folder.path().string()}); }
};

}  // namespace

TEST_CASE("Fisher Potential chooses where trained weights and data are there, and sees what magnitude does not", "[unit][fisher]") {
    const Scored scored(true);
    const Importance by_fisher = scored.importance();
    INFO(by_fisher.why);
    CHECK(by_fisher.criterion == Criterion::fisher);
    CHECK(by_fisher.why.find("100% correctly") != std::string::npos);
    CHECK(by_fisher.evidence.at("images") == 40);
    CHECK(by_fisher.channels.at("c")[0] == Approx(0).margin(1e-12));
    CHECK(by_fisher.channels.at("c")[1] > 0);

    GraphBuilder b("told");
    std::string hidden = b.relu("r", b.conv("c", b.input("x", {1, 2, 2, 2}), {.out = 2, .kernel = 1}));
    const Graph narrow = b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {hidden})}), 2)});
    CHECK(carry_weights(scored.graph, scored.weights, narrow, 0, by_fisher.worth()).at("c.weight").values == std::vector<float>{3, 0, -3, 0});
    const Importance by_magnitude = importance_of(scored.graph, &scored.weights, {});
    CHECK(by_magnitude.criterion == Criterion::magnitude);
    CHECK(carry_weights(scored.graph, scored.weights, narrow, 0, by_magnitude.worth()).at("c.weight").values == std::vector<float>{0, 9, 0, 9});

    const nlohmann::json scored_json = importance_json(by_fisher, scored.graph, narrow);
    CHECK(scored_json.at("criterion") == "fisher");
    CHECK(scored_json.at("kept").at("channels") == Approx(1));
}

TEST_CASE("without trained weights, without data, or where the two do not fit together, something else chooses and says why", "[unit][fisher]") {
    const Scored scored(true);
    CHECK(scored.importance(false).criterion == Criterion::first);
    CHECK_FALSE(scored.importance(false).worth());
    CHECK(importance_of(scored.graph, &scored.weights, {"synthetic"}).criterion == Criterion::magnitude);

    const Importance wrong = Scored(false).importance();
    INFO(wrong.why);
    CHECK(wrong.criterion == Criterion::magnitude);
    CHECK(wrong.why.find("20 of 40 images") != std::string::npos);
    CHECK(wrong.why.find("no more than chance") != std::string::npos);

    Scored flat(true);
    for (float& v : flat.weights["fc.weight"].values) v *= 1e4f;  // so sure of its answers that nothing moves them
    const Importance sure = flat.importance();
    INFO(sure.why);
    CHECK(sure.criterion == Criterion::magnitude);
}
