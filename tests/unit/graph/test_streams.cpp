#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "graph/builder.hpp"
#include "graph/carry_weights.hpp"
#include "graph/channel_worth.hpp"
#include "graph/drop_branch.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/interpreter.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"
#include "graph/weights.hpp"
#include "graph/zoo/zoo.hpp"
#include "tests/small_graphs.hpp"

using namespace loopegg;

namespace {

const Stream& stream_of(const Streams& streams, const std::string& writer) {
    const auto s = streams.written_by(writer);
    REQUIRE(s);
    return streams.all[*s];
}

std::string reason(const Graph& g, const std::string& site) { return branch_written_by(g, site).why_not; }

// Two blocks on a stream of 8 channels, with a grouped site in the second.
Graph small_residual() {
    GraphBuilder b("small");
    std::string x = b.relu("stem.relu", b.norm("stem.bn", b.conv("stem", b.input("x", {1, 3, 6, 6}), {.out = 8, .kernel = 3, .padding = 1})));
    for (int i = 0; i < 2; ++i) {
        const std::string at = "block" + std::to_string(i);
        std::string y = b.relu(at + ".relu", b.norm(at + ".bn1", b.conv(at + ".conv1", x, {.out = 8, .kernel = 3, .padding = 1})));
        y = b.norm(at + ".bn2", b.conv(at + ".conv2", y, {.out = 8, .kernel = 3, .padding = 1, .groups = i == 1 ? 2 : 1}));
        x = b.relu(at + ".out", b.add(at + ".add", y, x));
    }
    return b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("max_pool", "pool", {x}, {{"kernel", std::int64_t{3}}})}), 5)});
}

}  // namespace

TEST_CASE("a residual stream is everything that is added to it", "[unit][graph]") {
    const Streams streams = streams_of(zoo_graph("resnet34-cifar10"));
    const Stream& first = stream_of(streams, "layer1.2.conv2");
    CHECK(first.writers == std::vector<std::string>{"conv1", "layer1.0.conv2", "layer1.1.conv2", "layer1.2.conv2"});
    CHECK(first.joined);
    CHECK(first.fixed.empty());
    CHECK(std::count(first.readers.begin(), first.readers.end(), "layer2.0.downsample.0") == 1);
    CHECK(std::count(first.readers.begin(), first.readers.end(), "layer2.0.conv1") == 1);
    const Stream& hidden = stream_of(streams, "layer1.2.conv1");
    CHECK_FALSE(hidden.joined);
    CHECK(hidden.readers == std::vector<std::string>{"layer1.2.conv2"});
    CHECK(stream_of(streams, "fc").fixed.find("output") != std::string::npos);
    CHECK(stream_of(streams, "input").fixed.find("input") != std::string::npos);
}

TEST_CASE("channels are followed through depthwise convolutions, concatenations, tokens and parameters", "[unit][graph]") {
    const Streams mobile = streams_of(zoo_graph("mobilenet_v2"));
    CHECK(mobile.of.at("features.2.conv.1.0").streams == mobile.of.at("features.2.conv.0.0").streams);
    CHECK(stream_of(mobile, "features.3.conv.2").writers == std::vector<std::string>{"features.2.conv.2", "features.3.conv.2"});
    const Streams dense = streams_of(zoo_graph("densenet100-cifar10"));
    CHECK(dense.of.at("features.denseblock1.denselayer3.cat").streams.size() == 4);
    CHECK(stream_of(dense, "features.denseblock1.denselayer3.conv2").joined);
    const Streams tokens = streams_of(zoo_graph("vit-tiny"));
    const Stream& residual = stream_of(tokens, "encoder.layers.encoder_layer_3.mlp.3");
    CHECK(std::count(residual.writers.begin(), residual.writers.end(), "encoder.pos_embedding") == 1);
    CHECK(std::count(residual.writers.begin(), residual.writers.end(), "conv_proj") == 1);
    CHECK(residual.fixed.find("output") != std::string::npos);
    CHECK(stream_of(tokens, "encoder.layers.encoder_layer_3.mlp.0").fixed.empty());
    CHECK_FALSE(stream_of(tokens, "encoder.layers.encoder_layer_3.self_attention.q_proj").fixed.empty());
    const Streams grouped = streams_of(zoo_graph("resnext29_2x64d"));
    CHECK(stream_of(grouped, "layer1.0.conv1").blocks == 2);
    CHECK(stream_of(grouped, "layer1.0.conv2").blocks == 2);
    CHECK(stream_of(grouped, "layer1.0.conv3").blocks == 1);
}

TEST_CASE("branches end in additions and concatenations, and a branch next to a projection is the branch", "[unit][graph]") {
    const Graph resnet = zoo_graph("resnet34-cifar10");
    const std::vector<Branch> branches = branches_of(resnet);
    CHECK(branches.size() == 16);
    const auto at = std::find_if(branches.begin(), branches.end(), [](const Branch& b) { return b.joins[0] == "layer2.0.add"; });
    REQUIRE(at != branches.end());
    CHECK(at->site == "layer2.0.conv2");
    CHECK(at->only == std::vector<std::string>{"layer2.0.conv1", "layer2.0.bn1", "layer2.0.relu", "layer2.0.conv2", "layer2.0.bn2"});
    CHECK(reason(resnet, "layer1.0.conv1").find("layer1.0.conv2") != std::string::npos);
    CHECK(reason(resnet, "fc").find("output") != std::string::npos);
    CHECK(reason(resnet, "conv1").find("read in") != std::string::npos);
    CHECK(branches_of(zoo_graph("vgg16-cifar10")).empty());
    CHECK(branches_of(zoo_graph("densenet100-cifar10")).size() == 48);
    CHECK(branches_of(zoo_graph("mobilenet_v2-cifar10")).size() == 10);
    CHECK(branches_of(zoo_graph("vit-tiny")).size() == 24);
    CHECK(branches_of(zoo_graph("bert-tiny")).size() == 4);
}

TEST_CASE("every branch of every network can be dropped, and every width that is free can be narrower", "[unit][graph]") {
    for (const char* name : {"resnet34-cifar10", "resnext29_2x64d", "densenet100-cifar10", "mobilenet_v2-cifar10", "vgg16-cifar10", "bert-tiny", "vit-tiny"}) {
        INFO(name);
        const Graph graph = zoo_graph(name);
        const Weights weights = initial_weights(graph, 1);
        for (const Branch& b : branches_of(graph)) {
            const Graph without = without_branch(graph, b);
            CHECK(macs(without) <= macs(graph) - b.macs);
            CHECK(without.find(b.site) == nullptr);
        }
        const Streams streams = streams_of(graph);
        std::size_t narrower = 0;
        for (std::size_t s = 0; s < streams.all.size(); ++s) {
            const Stream& stream = streams.all[s];
            const std::int64_t width = stream.width * 5 / 8 / stream.blocks * stream.blocks;
            if (!stream.fixed.empty() || width < 1) continue;
            const Graph narrow = with_widths(graph, streams, {{s, width}});
            CHECK(macs(narrow) < macs(graph));
            check_weights(narrow, carry_weights(graph, weights, narrow), "carried");
            ++narrower;
        }
        CHECK(narrower > 0);
    }
}

// What the narrower network computes is what the wide one computes with the channels zero that were left out, and weights that were not touched.
TEST_CASE("carried weights compute what the wide network does without the channels that are gone", "[unit][graph]") {
    const Graph graph = small_residual();
    const Weights weights = initial_weights(graph, 3);
    const Tensor image = normal_tensor({1, 3, 6, 6}, 1, "x");
    const Streams streams = streams_of(graph);
    const std::size_t s = *streams.written_by("stem");
    CHECK(streams.all[s].blocks == 2);
    const Graph narrow = with_widths(graph, streams, {{s, 4}});
    Weights zeroed = weights;  // channels 2, 3, 6 and 7: of two groups the first two of each are left
    for (const std::string& norm : {"stem.bn", "block0.bn2", "block1.bn2"})
        for (const char* tensor : {".weight", ".bias"})
            for (std::size_t c : {2, 3, 6, 7}) zeroed[norm + tensor].values[c] = 0;
    const Tensor wide = interpret(graph, zeroed, {{"x", image}}).at("fc"),
                 small = interpret(narrow, carry_weights(graph, weights, narrow), {{"x", image}}).at("fc");
    for (std::size_t i = 0; i < wide.values.size(); ++i) CHECK(small.values[i] == Approx(wide.values[i]).margin(1e-5));
}

TEST_CASE("without a branch, the network computes what it does where the branch adds nothing", "[unit][graph]") {
    const Graph graph = small_residual();
    const Weights weights = initial_weights(graph, 3);
    const Tensor image = normal_tensor({1, 3, 6, 6}, 1, "x");
    for (const char* block : {"block0", "block1"}) {
        const Graph shallow = without_branch(graph, branch_written_by(graph, std::string(block) + ".conv2"));
        CHECK(shallow.find(std::string(block) + ".out") == nullptr);  // a rectifier of a rectified value
        Weights zeroed = weights;
        for (float& w : zeroed[std::string(block) + ".bn2.weight"].values) w = 0;
        CHECK(interpret(shallow, carry_weights(graph, weights, shallow), {{"x", image}}).at("fc") == interpret(graph, zeroed, {{"x", image}}).at("fc"));
    }
}

TEST_CASE("a layer of a dense block leaves its readers with the right channels", "[unit][graph]") {
    GraphBuilder b("dense");
    std::string x = b.conv("stem", b.input("x", {1, 3, 5, 5}), {.out = 6, .kernel = 3, .padding = 1});
    for (int i = 0; i < 3; ++i) {
        const std::string at = "layer" + std::to_string(i);
        x = b.node("concat", at + ".cat", {x, b.conv(at + ".conv", b.relu(at + ".relu", x), {.out = 4, .kernel = 3, .padding = 1})});
    }
    const Graph graph = b.finish({b.conv("last", x, {.out = 3, .kernel = 1})});
    const Weights weights = initial_weights(graph, 5);
    const Tensor image = normal_tensor({1, 3, 5, 5}, 1, "x");
    const Graph without = without_branch(graph, branch_written_by(graph, "layer1.conv"));
    CHECK(without.find("last")->input_shapes[0][1] == 14);
    Weights zeroed = weights;
    for (float& w : zeroed["layer1.conv.weight"].values) w = 0;
    const Tensor wide = interpret(graph, zeroed, {{"x", image}}).at("last"),
                 small = interpret(without, carry_weights(graph, weights, without), {{"x", image}}).at("last");
    for (std::size_t i = 0; i < wide.values.size(); ++i) CHECK(small.values[i] == Approx(wide.values[i]).margin(1e-5));
}

TEST_CASE("of trained weights the largest channels stay, the same for every writer and reader", "[unit][graph]") {
    const Graph graph = small_residual();
    Weights weights = initial_weights(graph, 3);
    const Streams streams = streams_of(graph);
    const std::size_t s = *streams.written_by("stem");
    // Channels 3 and 6 are loud wherever they are written; with two groups, two of each four stay.
    for (const std::string& norm : {"stem.bn", "block0.bn2", "block1.bn2"})
        for (std::size_t c : {1, 3, 6, 7}) weights[norm + ".weight"].values[c] = 100;
    const Graph narrow = with_widths(graph, streams, {{s, 4}});
    const Weights carried = carry_weights(graph, weights, narrow, 0, summed_over_writers(weight_magnitudes(graph, weights)));
    for (const std::string& norm : {"stem.bn", "block0.bn2", "block1.bn2"}) CHECK(carried.at(norm + ".weight").values == std::vector<float>(4, 100.0f));
    const Tensor &old = weights.at("block0.conv1.weight"), &now = carried.at("block0.conv1.weight");
    CHECK(now.shape == Shape{8, 4, 3, 3});
    CHECK(now.values[9] == old.values[3 * 9]);  // its second input is the old fourth
    CHECK(now.values[2 * 9] == old.values[6 * 9]);
}

TEST_CASE("worth by site is summed over the writers of a stream, and a network keeps the shares of what is left", "[unit][graph]") {
    const Graph graph = small_residual();
    const Streams streams = streams_of(graph);
    const std::size_t s = *streams.written_by("stem");
    // Summed over its three writers, channels 0, 2, 5 and 7 count most, though no writer by itself says so. With two groups, two of each four stay.
    const SiteScores scores{{"stem", {3, 1, 0, 0, 1, 0, 0, 2}},
                            {"block0.conv2", {0, 0, 2, 1, 0, 3, 0, 0}},
                            {"block1.conv2", {0, 1, 1, 0, 0, 0, 2, 3}},
                            {"block0.conv1", {1, 1, 1, 1, 1, 1, 1, 1}}};
    const Graph narrow = with_widths(graph, streams, {{s, 4}});
    const Weights weights = initial_weights(graph, 1), carried = carry_weights(graph, weights, narrow, 0, summed_over_writers(scores));
    const Tensor &old = weights.at("stem.weight"), &now = carried.at("stem.weight");
    const std::int64_t kept[] = {0, 2, 5, 7};
    for (std::size_t c = 0; c < 4; ++c)
        for (std::size_t i = 0; i < 27; ++i) CHECK(now.values[c * 27 + i] == old.values[static_cast<std::size_t>(kept[c]) * 27 + i]);
    // The stream keeps 3 + 3 + 3 + 5 of 20, and the hidden stream of the first block all. Nobody scored the second one.
    const KeptWorth worth = kept_worth(graph, scores, narrow);
    CHECK(worth.channels == Approx((14.0 / 20 + 1) / 2));
    CHECK(worth.branches == 1);
    // The branches score 6 and 7.
    const KeptWorth shallow = kept_worth(graph, scores, without_branch(graph, branch_written_by(graph, "block1.conv2")));
    CHECK(shallow.channels == 1);
    CHECK(shallow.branches == Approx(6.0 / 13));
    CHECK(kept_worth(graph, {}, narrow).channels == 1);
}

TEST_CASE("the magnitude of a channel is its weights' norm times the norm's scale, as a share of its site", "[unit][graph]") {
    GraphBuilder b("two");
    Graph graph = b.finish({b.norm("bn", b.conv("c", b.input("x", {1, 1, 2, 2}), {.out = 2, .kernel = 1}))});
    const Weights weights{{"c.weight", {{2, 1, 1, 1}, {-3, 2}}},
                          {"bn.weight", {{2}, {1, -2}}},
                          {"bn.bias", {{2}, {0, 0}}},
                          {"bn.running_mean", {{2}, {0, 0}}},
                          {"bn.running_var", {{2}, {1, 16}}}};
    const SiteScores scores = weight_magnitudes(graph, weights);
    REQUIRE(scores.size() == 1);
    CHECK(scores.at("c")[0] == Approx(0.75).epsilon(1e-4));  // 3 * 1 / 1 of 3 + 2 * 2 / 4
    CHECK(scores.at("c")[1] == Approx(0.25).epsilon(1e-4));
}

namespace {

// x -> first -> bn -> relu -> second, and a shortcut around both where `residual` says so.
Graph block(const std::vector<std::string>& second_reads, bool residual = false) {
    GraphBuilder b("block");
    const std::string x = b.input("x", {1, 8, 5, 5});
    const std::string hidden = b.relu("relu", b.norm("bn", b.conv("first", x, {.out = 16, .kernel = 3, .padding = 1, .bias = true})));
    std::string y = b.conv("second", hidden, {.out = 16, .kernel = 3, .padding = 1});
    if (residual) y = b.add("sum", y, hidden);
    Graph g = b.finish({y});
    if (second_reads.empty()) return g;
    g.find("second")->domain = test::domain({second_reads});
    complete(g);
    return g;
}

std::size_t count(const Graph& g) { return hidden_widths(g).size(); }

}  // namespace

TEST_CASE("a hidden width lies between two sites and has no other reader", "[unit][graph]") {
    CHECK(count(block({})) == 1);
    CHECK(count(block({}, true)) == 0);
    const auto all = hidden_widths(zoo_graph("resnet34-cifar10"));
    CHECK(all.size() == 16);  // one in each block
    for (const HiddenWidth& h : all) CHECK(h.reader == h.writer.substr(0, h.writer.size() - 1) + "2");
    CHECK(count(zoo_graph("bert-tiny")) == 2);     // the wide layer of each encoder
    CHECK(count(zoo_graph("mobilenet_v2")) == 2);  // between blocks without a shortcut; inside one a depthwise convolution stands between
}

TEST_CASE("without outputs that nobody reads a network computes what it did", "[unit][graph][property]") {
    CHECK(rc::check("whatever part of the channels is read", [] {
        const std::string digit = *rc::gen::element<std::string>("ci%16", "ci%4", "ci%8", "ci/4%4", "ci/8%2");
        const std::int64_t radix = std::stoll(digit.substr(digit.find('%') + 1)), lo = *rc::gen::inRange<std::int64_t>(0, radix),
                           hi = *rc::gen::inRange<std::int64_t>(lo + 1, radix + 1);
        const Graph g = block({std::to_string(lo) + " <= " + digit + " < " + std::to_string(hi)});
        Graph less = without_unread_outputs(g);
        complete(less);
        RC_ASSERT(less.find("first")->domain.whole() == (hi - lo == radix));
        RC_ASSERT(macs(less) * radix == (macs(*g.find("first")) * (hi - lo)) + macs(*g.find("second")) * radix);
        const Weights weights = initial_weights(block({}), 3);
        const Tensors x{{"x", normal_tensor({1, 8, 5, 5}, 4, "x")}};
        RC_ASSERT(interpret(less, carry_weights(g, weights, less), x) == interpret(g, weights, x));
    }));
}

TEST_CASE("what is read, or restricted in other ways, stays", "[unit][graph]") {
    Graph tied = block({"ci/4%4 == co/4%4"});
    CHECK(without_unread_outputs(tied) == tied);
    Graph read = block({"0 <= ci%16 < 8"});
    read.find("first")->domain = {{DomainPart{{{{"co", 1, 16}, 0, 4}}, {}}}, Restore::zero};  // the reader misses some of these
    complete(read);
    CHECK(without_unread_outputs(read) == read);
    Graph repeated = block({"0 <= ci%16 < 8"});
    repeated.find("first")->domain = {{DomainPart{{{{"oh", 1, 5}, 0, 1}}, {}}}, Restore::repeat};
    complete(repeated);
    CHECK(without_unread_outputs(repeated) == repeated);
}
