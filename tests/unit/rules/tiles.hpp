// A small closed language for tests: loops over axes of known extent, without the machinery of real nests.
#pragma once
#include <charconv>

#include "rules/rule.hpp"

namespace loopegg {

// The extent of the axis that a class stands for: "co:8" has 8, and the extents of (quo A k) and (rem A k) follow from A and k.
class TileFacts final : public LatticeAnalysis<std::int64_t> {
public:
    std::string_view name() const override { return "tiles"; }
    std::int64_t fact_of(const EGraph& graph, const NodeView& node) const override {
        const std::string& op = node.op.text();
        auto child = [&](std::size_t i) { return (*this)[graph.find(node.children[i])]; };
        auto number = [&](std::size_t i) { return graph.integer(graph.find(node.children[i])).value_or(1); };
        if (op == "quo") return child(0) / number(1);
        if (op == "rem") return number(1);
        if (op == "span") return number(2) - number(1);
        std::int64_t extent = 0;
        if (const auto colon = op.find(':'); colon != std::string::npos) std::from_chars(op.data() + colon + 1, op.data() + op.size(), extent);
        return extent;
    }
    bool join_facts(std::int64_t& into, const std::int64_t& other) const override {
        const bool changed = into < other;
        into = std::max(into, other);
        return changed;
    }
};

inline const Language& tiles_language() {
    static const Language language = [] {
        auto extent = [](const Question& q) { return (*static_cast<const TileFacts*>(q.facts))[q.arguments[0].eclass]; };
        Language l;
        l.name = "tiles";
        l.operators = {{"at", "schedule", {"axis", "schedule"}}, {"cat", "schedule", {"schedule", "schedule"}}, {"done", "schedule", {}},
                       {"quo", "axis", {"axis", "number"}},      {"rem", "axis", {"axis", "number"}},           {"span", "axis", {"axis", "number", "number"}}};
        l.leaf_kind = [](std::string_view leaf) { return leaf.find(':') == std::string_view::npos ? std::nullopt : std::optional<std::string>("axis"); };
        l.guards = {{"long", {{"axis"}}, "the axis has more than one value", [extent](const Question& q) { return Verdict{extent(q) > 1}; }},
                    {"permutable", {{"axis", "axis"}}, "two loops may be swapped", [](const Question&) { return Verdict{true}; }},
                    {"capacity", {{}}, "the network keeps what it can learn", {}, true, true}};
        l.lists = {{"divisors", {{"axis"}}, "what divides its extent", [extent](const Question& q) {
                        std::vector<Term> all;
                        for (std::int64_t k = 2; k < extent(q); ++k)
                            if (extent(q) % k == 0) all.emplace_back(k);
                        return all;
                    }}};
        l.functions = {{"extent", {{"axis"}}, "how many values it has", [extent](const Question& q) -> std::optional<std::int64_t> { return extent(q); }}};
        l.make_facts = [] { return std::make_shared<TileFacts>(); };
        l.judge = [](const Language&, const Rule& rule, bool) {  // as if the judge had found a fault
            RuleVerdict verdict;
            verdict.proof = RuleVerdict::Proof::all_sizes;
            if (!rule.name.starts_with("unsound")) return verdict;
            verdict.proof = RuleVerdict::Proof::refuted;
            verdict.why = "visits 8 instances on the left, 4 on the right", verdict.counterexample = "(at co:8 done)";
            return verdict;
        };
        return l;
    }();
    return language;
}

}  // namespace loopegg
