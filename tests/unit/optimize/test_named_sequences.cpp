#include <catch2/catch.hpp>

#include "base/sexpr.hpp"
#include "optimize/answer/named_sequences.hpp"

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
    CHECK(effect_name({{{{}, {diagonal("oh", 16, "ci", 32, 2)}}}}, 64) == "spatial-group");
    DomainPart dense{{keep("co", 32, 2, 0, 1)}, {}};
    DomainPart by2{{keep("co", 32, 2, 0, 1)}, {diagonal("co", 16, "ci", 32, 2)}};
    DomainPart by4{{keep("co", 32, 2, 1, 2)}, {diagonal("co", 8, "ci", 16, 4)}};
    CHECK(effect_name({{dense, by4}}, 64) == "part-group");
    CHECK(effect_name({{by2, by4}}, 64) == "mixed-group");
    CHECK(effect_name({{{{keep("ci", 1, 64, 0, 32)}, {diagonal("co", 16, "ci", 8, 4)}}}}, 64) == "unnamed");
}

TEST_CASE("the paper's sequences are told by the steps that led to a variant", "[unit][optimize]") {
    const DerivationStep split{"split-loop", false, {{"?a", parse_term("oh:32")}, {"?k", parse_term("16")}}, {}, {}},
        cut{"cut-domain", false, {{"?a", parse_term("co:64")}, {"?k", parse_term("32")}}, {}, {}};
    const auto group = [](const char* rule, const char* a, const char* b, const char* groups) {
        return DerivationStep{rule, true, {{"?a", parse_term(a)}, {"?b", parse_term(b)}, {"?g", parse_term(groups)}}, {}, {}};
    };
    const DerivationStep first = group("group-first-part", "(span co:64 0 32)", "ci:64", "2"),
                         second = group("group-second-part", "(span co:64 32 64)", "ci:64", "4");
    CHECK(paper_sequence({split, group("group-axes", "(quo oh:32 16)", "ci:64", "2")}) == "S1");
    CHECK(paper_sequence({cut, first}) == "S2");
    CHECK(paper_sequence({cut, second}) == "S2");
    CHECK(paper_sequence({cut, second, first}) == "S3");
    CHECK(paper_sequence({}).empty());
    CHECK(paper_sequence({group("group-axes", "co:64", "ci:64", "2")}).empty());
    CHECK(paper_sequence({first}).empty());                                                          // no part was cut
    CHECK(paper_sequence({cut, first, group("group-second-part", "co:64", "ci:64", "2")}).empty());  // the paper's parts have other groups
    CHECK(paper_sequence({cut, first, DerivationStep{"bottleneck-second-part", true, {{"?a", parse_term("ci:64")}}, {}, {}}}).empty());
}
