// How a folder of images is divided into those that are learned from and those that accuracy is measured on.
#include <set>

#include <catch2/catch.hpp>

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
