#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "base/sexpr.hpp"
#include "extract/cost_model.hpp"

using namespace loopegg;

namespace {

float feature(const char* nest, std::string_view name) {
    auto names = feature_names();
    auto at = std::find(names.begin(), names.end(), name);
    REQUIRE(at != names.end());
    return features_of(complete(parse_term(nest)))[static_cast<std::size_t>(at - names.begin())];
}

}  // namespace

TEST_CASE("features say what a schedule does", "[unit][extract]") {
    const char* plain = "(nest (linear 1 64 32) (at co (at ci done)))";
    const char* tiled = "(nest (linear 1 64 32) (par (quo co 16) (stage O (at ci (vec (rem co 16) done)))))";
    CHECK(feature(plain, "instances") == Approx(std::log2(1 + 64 * 32)));
    CHECK(feature(tiled, "instances") == feature(plain, "instances"));
    CHECK(feature(tiled, "vector") == Approx(std::log2(17)));
    CHECK(feature(tiled, "parallel") == Approx(std::log2(5)));
    CHECK(feature(tiled, "stage_out_elements") == Approx(std::log2(17)));
    CHECK(feature(tiled, "reduction_inside_stage") == Approx(std::log2(33)));
    CHECK(feature(tiled, "vector_stride_out") == Approx(1));  // next to each other in the output
    CHECK(feature(plain, "stage_out") == 0);
}

TEST_CASE("the model learns to rank", "[unit][extract]") {
    std::mt19937 draw(7);
    auto row = [&] {
        std::vector<float> r(feature_names().size());
        for (float& x : r) x = static_cast<float>(draw() % 64) / 8;
        return r;
    };
    auto truth = [](const std::vector<float>& r) { return 1.0 / (1.0 + r[3] + 0.3 * r[9]); };
    CostModel model;
    CHECK_FALSE(model.ready());
    for (int i = 0; i < 300; ++i) {
        auto r = row();
        model.add(r, truth(r));
    }
    model.fit();
    std::vector<std::vector<float>> fresh;
    for (int i = 0; i < 200; ++i) fresh.push_back(row());
    auto guess = model.predict(fresh);
    int right = 0, pairs = 0;
    for (std::size_t i = 0; i < fresh.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) ++pairs, right += (guess[i] > guess[j]) == (truth(fresh[i]) > truth(fresh[j]));
    CHECK(right > pairs * 8 / 10);
}
