#include <catch2/catch.hpp>

#include "optimize/named_sequences.hpp"

using namespace loopegg;

namespace {
DigitPair diagonal(const char* a, std::int64_t a_stride, const char* b, std::int64_t b_stride, std::int64_t groups) {
    return {{a, a_stride, groups}, {b, b_stride, groups}};
}
DigitRange keep(const char* axis, std::int64_t stride, std::int64_t radix, std::int64_t lo, std::int64_t hi) { return {{axis, stride, radix}, lo, hi}; }
}  // namespace

TEST_CASE("an effect has the name that people know it by", "[unit][optimize]") {
    CHECK(effect_name({}, 64) == "dense");
    CHECK(effect_name({{{{}, {diagonal("co", 16, "ci", 16, 4)}}}}, 64) == "group");
    CHECK(effect_name({{{{}, {diagonal("co", 1, "ci", 1, 64)}}}}, 64) == "depthwise");
    CHECK(effect_name({{{{keep("ci", 1, 64, 0, 32)}, {}}}}, 64) == "bottleneck");
    CHECK(effect_name({{{{keep("oh", 1, 2, 0, 1)}, {}}}, Restore::repeat}, 64) == "spatial-bottleneck");
    CHECK(effect_name({{{{keep("co", 1, 64, 0, 16)}, {}}}, Restore::pointwise}, 64) == "pointwise");
    CHECK(effect_name({{{{keep("co", 1, 64, 0, 16), keep("kh", 1, 3, 0, 1)}, {}}}, Restore::pointwise}, 64) == "unnamed");
    CHECK(effect_name({{{{}, {diagonal("oh", 16, "ci", 32, 2)}}}}, 64) == "S1");
    DomainPart dense{{keep("co", 32, 2, 0, 1)}, {}};
    DomainPart by2{{keep("co", 32, 2, 0, 1)}, {diagonal("co", 16, "ci", 32, 2)}};
    DomainPart by4{{keep("co", 32, 2, 1, 2)}, {diagonal("co", 8, "ci", 16, 4)}};
    CHECK(effect_name({{dense, by4}}, 64) == "S2");
    CHECK(effect_name({{by2, by4}}, 64) == "S3");
    CHECK(effect_name({{{{keep("ci", 1, 64, 0, 32)}, {diagonal("co", 16, "ci", 8, 4)}}}}, 64) == "unnamed");
}
