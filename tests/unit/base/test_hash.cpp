#include <catch2/catch.hpp>

#include <set>

#include "base/hash.hpp"

using namespace loopegg;

TEST_CASE("values are framed: where one ends matters", "[unit][base]") {
    CHECK(Hasher().add("ab").add("c").finish() != Hasher().add("a").add("bc").finish());
    CHECK(Hasher().add("").finish() != Hasher().finish());
}

TEST_CASE("stored keys never change: these are part of the file format", "[unit][base]") {
    CHECK(hash_of("loopegg").hex() == "4ba3dfdbb10f905625102e58282c865a");
    CHECK(Hasher().add(1).add(2.5).add("x").finish().hex() == "59b0b34c65b9be1a8e84497619db8077");
}

TEST_CASE("near inputs do not collide", "[unit][base]") {
    std::set<Hash128> seen;
    for (int i = 0; i < 100'000; ++i) seen.insert(Hasher().add(i).add(i / 7).finish());
    CHECK(seen.size() == 100'000);
}
