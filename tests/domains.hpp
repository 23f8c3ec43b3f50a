// Domains in tests, by the text of their conditions.
#pragma once
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "graph/domain.hpp"

namespace loopegg::test {

// One part for each list of conditions, such as {"co/16%4 == ci/16%4"}.
inline Domain domain(const std::vector<std::vector<std::string>>& parts, Restore restore = Restore::none) {
    Domain d{{}, restore};
    for (const auto& conditions : parts) {
        DomainPart part;
        for (const std::string& c : conditions) REQUIRE(add_condition(part, c) == "");
        d.parts.push_back(part);
    }
    return d;
}

}  // namespace loopegg::test
