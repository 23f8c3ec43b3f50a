// Training: what it learns, and that an interrupted run goes on as if nothing had happened.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/files.hpp"
#include "fisher/engine.hpp"
#include "graph/builder.hpp"
#include "graph/load.hpp"
#include "graph/operators.hpp"
#include "graph/safetensors.hpp"
#include "graph/weights.hpp"

using namespace loopegg;

namespace {

namespace fs = std::filesystem;

Graph classifier(std::int64_t width = 8) {
    GraphBuilder b("classifier");
    std::string x = b.input("x", {1, 3, 8, 8});
    for (const char* n : {"0", "1"})
        x = b.relu(std::string("relu") + n, b.norm(std::string("bn") + n, b.conv(std::string("conv") + n, x, {.out = width, .kernel = 3, .padding = 1})));
    return b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {x})}), 3)});
}

// Three classes that differ in which colour is bright, under noise.
Batch images(std::int64_t n, std::uint64_t seed) {
    Batch batch{{n, 3, 8, 8}, normal_tensor({n, 3, 8, 8}, seed, "images").values, {}};
    for (std::int64_t i = 0; i < n; ++i) {
        batch.labels.push_back(i % 3);
        for (std::int64_t p = 0; p < 64; ++p) batch.images[static_cast<std::size_t>((i * 3 + i % 3) * 64 + p)] += 1.0f;
    }
    return batch;
}

struct Checkpoint {
    fs::path path = fs::temp_directory_path() / ("loopegg-checkpoint-" + std::to_string(::getpid()));
    Checkpoint() { fs::remove(path); }
    ~Checkpoint() { fs::remove(path); }
};

TrainOptions options(const fs::path& checkpoint = {}) {
    TrainOptions o;
    o.epochs = 4, o.batch = 16, o.threads = 1, o.seed = 3, o.checkpoint = checkpoint.string();
    return o;
}

struct Interrupted {};

Weights trained(const Graph& graph, const TrainOptions& o, int interrupt_after = 0, std::vector<TrainReport>* reports = nullptr,
                const Model* teacher = nullptr) {
    Weights weights = initial_weights(graph, 5);
    torch_runtime().train(graph, weights, {images(96, 1), images(48, 2), "drawn"}, teacher, o, [&](const TrainReport& r) {
        if (reports) reports->push_back(r);
        if (r.epoch == interrupt_after) throw Interrupted{};
        return true;
    });
    return weights;
}

}  // namespace

TEST_CASE("training learns what can be learned", "[unit][fisher]") {
    Graph g = classifier();
    std::vector<TrainReport> reports;
    double before = torch_runtime().accuracy(g, initial_weights(g, 5), images(48, 2), 1);
    Weights after = trained(g, options(), 0, &reports);
    REQUIRE(reports.size() == 4);
    CHECK(reports.back().loss < reports.front().loss);
    CHECK(reports.back().accuracy > 95);
    CHECK(reports.back().accuracy > before);
    CHECK(torch_runtime().accuracy(g, after, images(48, 2), 1) == reports.back().accuracy);
}

TEST_CASE("a training that was interrupted goes on to the same weights, bit for bit", "[unit][fisher]") {
    Graph g = classifier();
    Checkpoint c;
    Weights straight = trained(g, options());
    for (int at : {1, 3}) {
        CHECK_THROWS_AS(trained(g, options(c.path), at), Interrupted);
        REQUIRE(fs::exists(c.path));
        std::vector<TrainReport> rest;
        CHECK(trained(g, options(c.path), 0, &rest) == straight);
        CHECK(rest.size() == static_cast<std::size_t>(4 - at));
        fs::remove(c.path);
    }
}

TEST_CASE("a teacher is learned from", "[unit][fisher]") {
    Graph student = classifier(4);
    Model teacher{classifier(16), {}};
    teacher.weights = trained(teacher.graph, options());
    TrainOptions o = options();
    o.distill = 1.0;  // the labels count for nothing
    std::vector<TrainReport> reports;
    Weights learned = trained(student, o, 0, &reports, &teacher);
    CHECK(reports.back().loss < reports.front().loss);
    CHECK(reports.back().accuracy > 50);  // chance is a third
    CHECK(learned != trained(student, options()));
}

TEST_CASE("mixed images train, and an interrupted training run with them resumes to the same weights", "[unit][fisher]") {
    Graph g = classifier();
    Checkpoint c;
    TrainOptions mixing = options();
    mixing.mixed = 0.5;
    std::vector<TrainReport> reports;
    const Weights straight = trained(g, mixing, 0, &reports);
    CHECK(reports.back().loss < reports.front().loss);
    CHECK(reports.back().accuracy > 80);
    CHECK(straight != trained(g, options()));
    mixing.checkpoint = c.path;
    CHECK_THROWS_AS(trained(g, mixing, 2), Interrupted);
    CHECK(trained(g, mixing) == straight);
}

TEST_CASE("a checkpoint that does not fit is refused, and says what to do", "[errors][fisher]") {
    Graph g = classifier();
    Checkpoint c;
    CHECK_THROWS_AS(trained(g, options(c.path), 2), Interrupted);
    TrainOptions longer = options(c.path);
    longer.epochs = 9;
    CHECK_THROWS_WITH(trained(g, longer), Catch::Contains("of a run of 4 epochs"));
    CHECK_THROWS_WITH(trained(classifier(6), options(c.path)), Catch::Contains("does not fit this network or is damaged"));
    std::string bytes = read_file(c.path);
    write_file(c.path, bytes.substr(0, bytes.size() / 2));
    CHECK_THROWS_WITH(trained(g, options(c.path)), Catch::Contains("damaged"));
    write_file(c.path, bytes);
    for (const std::vector<float>& epoch : {std::vector<float>{-1, 4}, {9, 4}, {1.5f, 4}, {NAN, 4}, {2}}) {
        Weights all = read_safetensors(c.path);
        all["epoch"] = {{static_cast<std::int64_t>(epoch.size())}, epoch};
        write_file(c.path, write_safetensors(all));
        CHECK_THROWS_WITH(trained(g, options(c.path)), Catch::Contains("damaged"));
    }
}

TEST_CASE("a loss that is no number ends the training with a hint", "[errors][fisher]") {
    TrainOptions o = options();
    o.rate = 1e30;
    CHECK_THROWS_WITH(trained(classifier(), o), Catch::Contains("no finite number"));
}

TEST_CASE("a network with nothing to train is refused", "[errors][fisher]") {
    GraphBuilder b("idle");
    Graph g = b.finish({b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {b.relu("relu", b.input("x", {1, 3, 8, 8}))})})});
    CHECK_THROWS_WITH(trained(g, options()), Catch::Contains("nothing to train"));
}
