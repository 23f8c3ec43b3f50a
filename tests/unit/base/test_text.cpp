#include <catch2/catch.hpp>

#include "base/suggest.hpp"
#include "base/text.hpp"

using namespace loopegg;

TEST_CASE("site globs", "[unit][base]") {
    CHECK(glob_matches("layer[34].*.conv?", "layer3.0.conv1"));
    CHECK_FALSE(glob_matches("layer[34].*.conv?", "layer2.0.conv1"));
    CHECK(glob_matches("*", ""));
    CHECK(glob_matches("*.conv1", "a.b.conv1"));
    CHECK_FALSE(glob_matches("a[", "a["));
    CHECK(glob_matches("[!x]b", "ab"));
    CHECK_FALSE(glob_matches(std::string(200, '*') + "b", std::string(5000, 'a')));
}

TEST_CASE("UTF-8 is checked strictly", "[unit][base]") {
    CHECK_FALSE(first_invalid_utf8("plain, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\xa5\x9a"));
    CHECK(first_invalid_utf8("ab\xc3") == 2);
    CHECK(first_invalid_utf8("\xc0\xaf") == 0);          // overlong
    CHECK(first_invalid_utf8("a\xed\xa0\x80") == 1);     // surrogate
    CHECK(first_invalid_utf8("\xf4\x90\x80\x80") == 0);  // beyond U+10FFFF
}

TEST_CASE("a near name is suggested, a far one is not", "[unit][base]") {
    std::vector<std::string> known{"conv2d", "linear", "matmul"};
    CHECK(did_you_mean("con2d", known) == "did you mean 'conv2d'?");
    CHECK(did_you_mean("lienar", known) == "did you mean 'linear'?");
    CHECK(did_you_mean("attention", known).empty());
}

TEST_CASE("numbers for people", "[unit][base]") {
    CHECK(with_commas(0) == "0");
    CHECK(with_commas(1234567) == "1,234,567");
    CHECK(with_commas(-1000) == "-1,000");
}
