#include "nest/net/resize.hpp"

#include "nest/domain/domain.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

std::int64_t extent_of(const Statement& s, const char* name) {
    const int a = s.axis(name);
    return a < 0 ? 1 : s.axes[static_cast<std::size_t>(a)].extent;
}

// What follows the sums of a statement (epilogues) stays.
Term resized(const Term& statement, const char* axis, std::int64_t size) {
    if (statement.is("epilogue", 2)) return Term("epilogue", {statement[0], resized(statement[1], axis, size)});
    return with_size(statement, axis, Term(size));
}

// The whole nest with another extent of an axis.
Term nest_with(const Term& statement, const char* axis, std::int64_t size) { return channels_first(statement_of(resized(statement, axis, size))); }

// The statement of a nest that may be resized.
std::optional<Statement> whole_site(const Term& nest) {
    const NestParts parts = nest_parts(nest);
    Statement s = statement_of(parts.statement);
    if (s.axis("co") < 0 || s.axis("ci") < 0 || !parts.restore.empty() || !domain_of(nest).whole()) return {};
    return s;
}

}  // namespace

bool is_depthwise(const Statement& s) { return extent_of(s, "g") > 1 && extent_of(s, "co") == 1 && extent_of(s, "ci") == 1; }
std::int64_t output_channels(const Statement& s) { return s.axis("co") < 0 ? 0 : extent_of(s, "co") * extent_of(s, "g"); }
std::int64_t input_channels(const Statement& s) { return s.axis("ci") < 0 || s.axis("co") < 0 ? 0 : extent_of(s, "ci") * extent_of(s, "g"); }

Term channels_first(const Statement& s) {
    std::vector<Term> loops;
    for (const char* name : {"co", "ci"})
        if (const std::int64_t extent = extent_of(s, name); extent > 1) loops.push_back(axis_leaf(name, extent));
    for (const Iterator& it : s.axes)
        if (it.extent > 1 && it.name != "co" && it.name != "ci") loops.push_back(axis_leaf(it.name, it.extent));
    Term sched("done");
    for (std::size_t i = loops.size(); i-- > 0;) sched = Term("at", {loops[i], sched});
    return Term("nest", {s.term, sched});
}

Term channels_first(const Node& node) {
    const Term naive = nest_of(node);
    const Statement s = statement_of(nest_parts(naive).statement);
    return node.domain.whole() && s.axis("co") >= 0 && s.axis("ci") >= 0 ? channels_first(s) : naive;
}

std::optional<Term> with_outputs(const Term& nest, std::int64_t channels) {
    const auto s = whole_site(nest);
    if (!s || channels < 1 || channels > output_channels(*s) || is_depthwise(*s)) return {};
    const std::int64_t groups = extent_of(*s, "g");
    return channels % groups == 0 ? std::optional(nest_with(s->term, "co", channels / groups)) : std::nullopt;
}

std::optional<Term> with_fewer_inputs(const Term& nest, std::int64_t missing) {
    const auto s = whole_site(nest);
    if (!s || missing < 0 || missing >= input_channels(*s)) return {};
    const std::int64_t groups = extent_of(*s, "g"), left = input_channels(*s) - missing;
    if (is_depthwise(*s)) return nest_with(s->term, "g", left);
    return left % groups == 0 ? std::optional(nest_with(s->term, "ci", left / groups)) : std::nullopt;
}

}  // namespace loopegg
