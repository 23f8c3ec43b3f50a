#include <catch2/catch.hpp>

#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/axis.hpp"

using namespace loopegg;

namespace {
std::string normal(const char* axis) { return to_string(to_term(normal_axis(parse_term(axis)))); }
}  // namespace

TEST_CASE("equal axes have one normal form", "[unit]") {
    CHECK(normal("(quo (quo co:64 4) 4)") == "(quo co:64 16)");
    CHECK(normal("(rem (rem co:64 16) 4)") == "(rem co:64 4)");
    CHECK(normal("(pair (quo co:64 16) (rem co:64 16))") == "co:64");
    CHECK(normal("(pair (quo co:40 16) (rem co:40 16))") == "co:40");
    CHECK(normal("(quo (pair oh:8 ow:8) 8)") == "oh:8");
    CHECK(normal("(rem (pair oh:8 ow:8) 4)") == "(rem ow:8 4)");
    CHECK(normal("(span (span co:64 8 40) 0 16)") == "(span co:64 8 24)");
    CHECK(normal("(span co:64 0 64)") == "co:64");
    CHECK(axis_extent(parse_term("(quo co:40 16)")) == 3);
    CHECK(axis_extent(parse_term("(quo (rem co:64 16) 3)")) == 6);
    CHECK(axis_extent(parse_term("(diag 4 co:64 ci:32)")) == 4);
}

TEST_CASE("an axis that cannot be is refused in words", "[unit]") {
    CHECK_THROWS_AS(normal("(diag 3 co:64 ci:32)"), MalformedAxis);
    CHECK_THROWS_AS(normal("(span co:64 8 65)"), MalformedAxis);
    CHECK_THROWS_AS(normal("(tile co:64 8)"), MalformedAxis);
    CHECK_THROWS_AS(normal("co"), MalformedAxis);
}

TEST_CASE("normal forms have the values of what they stand for", "[unit]") {
    for (const char* text : {"(quo (rem co:24 12) 3)", "(rem (quo (rem co:24 12) 5) 2)", "(quo (pair co:4 ci:6) 4)", "(rem (pair co:4 ci:6) 12)",
                             "(quo (span co:24 6 18) 4)", "(rem (quo co:23 5) 2)", "(pair (rem co:24 4) (quo ci:6 2))", "(diag 2 (span co:24 6 18) ci:6)"}) {
        Term axis = parse_term(text), form = to_term(normal_axis(axis));
        for (std::int64_t co = 0; co < 24; ++co)
            for (std::int64_t ci = 0; ci < 6; ++ci) {
                auto value = [&](const Term& leaf) -> std::optional<std::int64_t> {
                    auto name = axis_name(leaf);
                    return (name->name == "co" ? co : ci) % name->extent;
                };
                INFO(text << " as " << to_string(form));
                CHECK(axis_value(axis, value) == axis_value(form, value));
            }
    }
}
