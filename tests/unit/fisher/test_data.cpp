// Images for guards: files of CIFAR-10, batches of NumPy, and synthetic images.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/scratch.hpp"
#include "fisher/data.hpp"
#include "graph/builder.hpp"
#include "graph/npy.hpp"

using namespace loopegg;

namespace {

Graph classifier() {
    GraphBuilder b("classifier");
    return b.finish({b.linear("fc", b.node("flatten", "flat", {b.input("x", {1, 1, 2, 2})}), 4)});
}

struct Folder : ScratchFolder {
    Folder() : ScratchFolder(std::filesystem::temp_directory_path() / "loopegg-data-test") {}
    // Images of four classes, sorted by class. The first pixel of each is its number.
    void put(const std::string& name, std::int64_t images, float first = 0) const {
        std::filesystem::create_directories(path() / name);
        Tensor x{{images, 1, 2, 2}, {}}, y{{images}, {}};
        for (std::int64_t i = 0; i < images; ++i) {
            x.values.insert(x.values.end(), {first + static_cast<float>(i), 0, 0, 0});
            y.values.push_back(static_cast<float>(4 * i / images));
        }
        write_scratch(path() / name / "images.npy", write_npy(x));
        write_scratch(path() / name / "labels.npy", write_npy(y));
    }
    Splits splits(std::int64_t limit = 0, std::uint64_t seed = 1) const { return load_splits(path().string(), classifier(), limit, seed); }
};

std::multiset<float> numbers(const Batch& batch) {
    std::multiset<float> all;
    for (std::size_t i = 0; i < batch.images.size(); i += 4) all.insert(batch.images[i]);
    return all;
}

std::set<std::int64_t> classes(const Batch& batch) { return {batch.labels.begin(), batch.labels.end()}; }

}  // namespace

TEST_CASE("every image is in one of two parts, and both have all classes of a sorted folder", "[unit][fisher]") {
    Folder folder;
    folder.put("", 400);
    const Splits splits = folder.splits();
    CHECK(splits.test.labels.size() == 40);
    std::multiset<float> both = numbers(splits.train);
    for (float n : numbers(splits.test)) both.insert(n);
    CHECK(both.size() == 400);
    CHECK(std::set<float>(both.begin(), both.end()).size() == 400);
    CHECK(classes(splits.train).size() == 4);
    CHECK(classes(splits.test).size() == 4);
    CHECK(classes(folder.splits(40).train).size() == 4);
}

TEST_CASE("networks are compared on the same images, whatever their seed", "[unit][fisher]") {
    Folder folder;
    folder.put("", 50);
    CHECK(folder.splits(0, 1).test.images == folder.splits(0, 2).test.images);
    CHECK(numbers(folder.splits(3, 1).test) == numbers(folder.splits(3, 2).test));
}

TEST_CASE("a user's own division is kept", "[unit][fisher]") {
    for (const char* name : {"val", "valid", "validation", "test"}) {
        Folder folder;
        folder.put("train", 20);
        folder.put(name, 6, 100);
        const Splits splits = folder.splits();
        CHECK(splits.train.labels.size() == 20);
        CHECK(numbers(splits.test) == std::multiset<float>{100, 101, 102, 103, 104, 105});
        for (float n : numbers(load_some(folder.path().string(), classifier(), 50, 1).batches.at(0))) CHECK(n < 100);
    }
}

TEST_CASE("a folder of images to learn from needs one to measure accuracy on", "[errors][fisher]") {
    Folder folder;
    folder.put("train", 20);
    CHECK_THROWS_WITH(folder.splits(), Catch::Contains("none for the images that accuracy is measured on") && Catch::Contains("validation"));
}

namespace {

constexpr std::int64_t n = 64, channels = 3, side = 32;

// Over all pixels that have one: the correlation with the value `step` places further on.
double agreement(const std::vector<float>& x, std::size_t step, std::int64_t within) {
    double xy = 0, xx = 0;
    for (std::size_t i = 0; i + step < x.size(); ++i) {
        if (static_cast<std::int64_t>(i / step) % within == within - 1) continue;
        xy += x[i] * x[i + step], xx += x[i] * x[i];
    }
    return xy / xx;
}

}  // namespace

TEST_CASE("drawn pictures are seeded, and like photographs in what neighbours and channels have in common", "[unit][fisher]") {
    const std::vector<float> x = dead_leaves({n, channels, side, side}, 5);
    REQUIRE(x.size() == n * channels * side * side);
    CHECK(x == dead_leaves({n, channels, side, side}, 5));
    CHECK(x != dead_leaves({n, channels, side, side}, 6));
    double sum = 0, squares = 0;
    for (float v : x) sum += v, squares += v * v;
    const double count = static_cast<double>(x.size()), mean = sum / count;
    CHECK(std::abs(mean) < 0.15);
    CHECK(std::sqrt(squares / count - mean * mean) == Approx(1).margin(0.15));
    const double adjacent = agreement(x, 1, side), below = agreement(x, side, side), far = agreement(x, 16, side / 16);
    CHECK(adjacent > 0.7);
    CHECK(below > 0.7);
    CHECK(far < 0.6 * adjacent);
    CHECK(agreement(x, side * side, channels) > 0.6);
}
