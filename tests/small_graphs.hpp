// Small networks and domains in tests: a network for each row of the operators with loops, and domains by the text of their conditions.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "base/text.hpp"
#include "graph/builder.hpp"
#include "graph/domain.hpp"
#include "graph/loop_operators.hpp"

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

// Batch 2, then sizes of 3 and more, windows of 2 or 3, and padding where the row has padding.
inline Graph loop_graph(const LoopOperator& row) {
    GraphBuilder b{std::string(row.name)};
    std::map<std::string, std::int64_t> sizes;
    std::vector<std::string> inputs;
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
        Shape shape;
        for (const std::string& name : split(row.inputs[i], ' '))
            shape.push_back(sizes.try_emplace(name, 2 + static_cast<std::int64_t>(sizes.size()) * 2 - (sizes.size() == 1)).first->second);
        inputs.push_back(b.input(i == 0 ? "x" : "z", shape));
    }
    std::map<std::string, Attr> attrs;
    for (const LoopAttribute& a : row.attributes) {
        const std::int64_t value = a.spec.low == 0 ? 1 : a.spec.like.empty() ? 3 : 2;
        if (a.spec.kind == AttrKind::integer)
            attrs[std::string(a.spec.name)] = value;
        else
            attrs[std::string(a.spec.name)] = std::vector<std::int64_t>(split(a.sizes, ' ').size(), value);
    }
    return b.finish({b.node(std::string(row.name), "y", inputs, attrs)});
}

}  // namespace loopegg::test
