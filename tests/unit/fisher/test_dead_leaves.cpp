// Pictures for a guard that was given none.
#include <cmath>

#include <catch2/catch.hpp>

#include "fisher/data.hpp"

using namespace loopegg;

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
    const double beside = agreement(x, 1, side), below = agreement(x, side, side), far = agreement(x, 16, side / 16);
    CHECK(beside > 0.7);
    CHECK(below > 0.7);
    CHECK(far < 0.6 * beside);
    CHECK(agreement(x, side * side, channels) > 0.6);
}
