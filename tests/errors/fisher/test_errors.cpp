#include <catch2/catch.hpp>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.hpp"
#include "base/files.hpp"
#include "fisher/data.hpp"
#include "fisher/oracle.hpp"
#include "graph/builder.hpp"
#include "graph/npy.hpp"

using namespace loopegg;

namespace {

namespace fs = std::filesystem;

Graph classifier(std::int64_t classes = 10) {
    GraphBuilder b("classifier");
    std::string x = b.input("x", {1, 3, 32, 32});
    x = b.relu("relu", b.norm("bn", b.conv("conv", x, {.out = 4, .kernel = 3, .stride = 4})));
    return b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {x})}), classes)});
}

struct Folder {
    fs::path path = fs::temp_directory_path() / ("loopegg-data-" + std::to_string(::getpid()));
    Folder() { fs::remove_all(path), fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
    void put(const std::string& name, const std::string& bytes) const { write_file(path / name, bytes); }
};

std::string cifar(std::size_t images, char label) {
    std::string bytes;
    for (std::size_t i = 0; i < images; ++i) bytes += label + std::string(3072, static_cast<char>(i * 7));
    return bytes;
}

template <class Do>
std::string complaint(Do what) {
    try {
        what();
    } catch (const UserError& e) {
        return e.what();
    }
    return "no complaint";
}

// Scores whatever it is told to.
class FixedScorer final : public Scorer {
public:
    explicit FixedScorer(std::vector<double> answers) : answers_(std::move(answers)) {}
    std::vector<RawScores> score(std::span<const ScoreQuestion> questions, const MeasureSet&) override {
        std::vector<RawScores> all(questions.size());
        for (RawScores& raw : all) raw.fisher = {{"conv", answers_[std::min(next_++, answers_.size() - 1)]}};
        return all;
    }

private:
    std::vector<double> answers_;
    std::size_t next_ = 0;
};

}  // namespace

TEST_CASE("a data folder that is not what it should be is refused by name", "[errors][fisher]") {
    Graph g = classifier();
    auto load = [&](const std::string& folder, std::int64_t n = 2) { return complaint([&] { load_batches(folder, g, n, 1, 0); }); };
    CHECK_THAT(load("/no/such/folder"), Catch::Contains("does not exist"));
    CHECK_THAT(load("", 0), Catch::Contains("empty batch"));
    Folder f;
    CHECK_THAT(load(f.path.string()), Catch::Contains("holds no batch"));
    f.put("data_batch_1.bin", cifar(4, 3));
    CHECK(load(f.path.string()) == "no complaint");
    CHECK_THAT(load(f.path.string(), 5), Catch::Contains("holds 4 images"));
    f.put("data_batch_2.bin", cifar(4, 3).substr(0, 9000));
    CHECK_THAT(load(f.path.string()), Catch::Contains("data_batch_2.bin is torn"));
    f.put("data_batch_2.bin", "");
    CHECK_THAT(load(f.path.string()), Catch::Contains("is empty"));
    f.put("data_batch_2.bin", cifar(2, 10));
    CHECK_THAT(load(f.path.string()), Catch::Contains("record 0 has the label 10"));
    f.put("data_batch_2.bin", cifar(2, 9));
    CHECK(load(f.path.string()) == "no complaint");
    g = classifier(5);
    CHECK_THAT(load(f.path.string()), Catch::Contains("has the label 9"));
}

TEST_CASE("npy batches are checked", "[errors][fisher]") {
    Graph g = classifier();
    Folder f;
    auto load = [&] { return complaint([&] { load_batches(f.path.string(), g, 2, 1, 0); }); };
    f.put("images0.npy", write_npy({{3, 3, 32, 32}, std::vector<float>(3 * 3072, 0.5f)}));
    CHECK_THAT(load(), Catch::Contains("holds no batch"));
    f.put("labels0.npy", write_npy({{3}, {0, 1, 9}}));
    CHECK(load() == "no complaint");
    f.put("labels0.npy", write_npy({{3}, {0, 1, 10}}));
    CHECK_THAT(load(), Catch::Contains("label 2 is 10"));
    f.put("labels0.npy", write_npy({{2}, {0, 1}}));
    CHECK_THAT(load(), Catch::Contains("holds 3 images"));
    f.put("labels0.npy", write_npy({{3}, {0, 1, 2}}));
    f.put("images0.npy", write_npy({{3, 3, 32, 32}, std::vector<float>(3 * 3072, std::numeric_limits<float>::quiet_NaN())}));
    CHECK_THAT(load(), Catch::Contains("expected finite numbers"));
    f.put("images0.npy", write_npy({{3, 3, 16, 16}, std::vector<float>(3 * 768, 0.5f)}));
    CHECK_THAT(load(), Catch::Contains("takes batches of 3x32x32"));
    std::string bytes = write_npy({{3, 3, 32, 32}, std::vector<float>(3 * 3072, 0.5f)});
    f.put("images0.npy", bytes.substr(0, bytes.size() / 2));
    CHECK(load() != "no complaint");
}

TEST_CASE("a network without anything to train has no capacity", "[errors][fisher]") {
    GraphBuilder b("idle");
    std::string x = b.input("x", {1, 3, 32, 32});
    Graph g = b.finish({b.node("flatten", "flat", {b.relu("relu", x)})});
    CHECK_THAT(complaint([&] { make_oracle({})->judge(g, {&g, 1}); }), Catch::Contains("there is no capacity to measure"));
}

TEST_CASE("unknown measures and senseless options are wrong use", "[errors][fisher]") {
    CHECK_THAT(complaint([] { measure_conditions("(fishr >= 0.9)", "--when"); }), Catch::Contains("--when:1:2") && Catch::Contains("did you mean 'fisher'?"));
    CHECK_THROWS_AS(measure_conditions("(fisher >= 0.9) (params => 0.5)", "--when"), UsageError);
    OracleOptions o;
    o = {};
    o.seeds = 0;
    CHECK_THROWS_AS(make_oracle(o), UsageError);
    o = {};
    o.conditions[0].threshold = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(make_oracle(o), UsageError);
    o = {};
    o.batch = 0;
    CHECK_THAT(complaint([&] { make_oracle(o); }), Catch::Contains("empty batch"));
}

TEST_CASE("a score that is no finite number is never admitted", "[errors][fisher]") {
    Graph g = classifier();
    double bad = std::numeric_limits<double>::quiet_NaN(), huge = std::numeric_limits<double>::infinity();
    for (const char* measure : {"expected-loss", "fisher-band", "fisher"})
        for (double answer : {bad, huge, -1.0}) {
            OracleOptions o;
            o.conditions = {{measure, true, -1e9}};
            o.scorer = std::make_shared<FixedScorer>(std::vector<double>{1.0, answer});
            if (answer == -1.0 && measure == std::string("fisher")) continue;  // a finite ratio, though a senseless one
            Verdict v = make_oracle(o)->judge(g, {&g, 1})[0];
            CHECK_FALSE(v.allowed);
            CHECK_THAT(v.why, Catch::Contains("no finite"));
        }
    // An original that scores nothing cannot be compared with.
    for (double answer : {bad, 0.0}) {
        OracleOptions o;
        o.scorer = std::make_shared<FixedScorer>(std::vector<double>{answer});
        CHECK_THAT(complaint([&] { make_oracle(o)->judge(g, {&g, 1}); }), Catch::Contains("nothing can be compared"));
    }
}
