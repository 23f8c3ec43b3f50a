#include "nest/term/grammar.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

constexpr std::array<std::string_view, 5> axis_operators{"quo", "rem", "pair", "span", "diag"};
constexpr std::array<std::string_view, 6> loop_operator_names{"at", "par", "vec", "unroll", "bind", "partial"};

bool one_of(std::span<const std::string_view> names, std::string_view op) { return std::find(names.begin(), names.end(), op) != names.end(); }

Term rebuild(const Term& term, std::vector<Term> children) { return Term(term.op(), std::move(children)); }

Term complete_axis(const Statement& statement, const Term& axis) {
    if (axis.size() > 0) {
        std::vector<Term> children;
        for (const Term& child : axis.children()) children.push_back(child.integer() ? child : complete_axis(statement, child));
        return rebuild(axis, std::move(children));
    }
    auto written = axis_name(axis);
    int at = written ? statement.axis(written->name) : -1;
    if (at < 0) {
        std::vector<std::string> known;
        for (const Iterator& a : statement.axes) known.push_back(a.name);
        throw UserError(Diagnostic{
            "'" + to_string(axis) + "' is no axis of " + to_string(statement.term), {}, did_you_mean(written ? written->name : to_string(axis), known)});
    }
    std::int64_t extent = statement.axes[static_cast<std::size_t>(at)].extent;
    if (written->extent != 0 && written->extent != extent)
        throw UserError("axis '" + to_string(axis) + "' has extent " + std::to_string(extent) + " in " + to_string(statement.term));
    return axis_leaf(written->name, extent);
}

}  // namespace

std::optional<AxisName> axis_name(const Term& leaf) {
    if (!leaf || leaf.size() > 0 || leaf.integer()) return {};
    const std::string& text = leaf.op().text();
    auto colon = text.find(':');
    if (colon == std::string::npos) return text.empty() ? std::nullopt : std::optional(AxisName{text, 0});
    const auto extent = number_in<std::int64_t>(std::string_view(text).substr(colon + 1)).value_or(0);
    if (extent < 1 || colon == 0) return {};
    return AxisName{text.substr(0, colon), extent};
}

Term axis_leaf(std::string_view name, std::int64_t extent) { return Term(std::string(name) + ":" + std::to_string(extent)); }

bool is_axis_operator(std::string_view op) { return one_of(axis_operators, op); }
bool is_loop_operator(std::string_view op) { return one_of(loop_operator_names, op); }

const Term& loop_axis(const Term& sched) { return sched[sched.size() - 2]; }
const Term& loop_rest(const Term& sched) { return sched[sched.size() - 1]; }

Term complete(const Statement& statement, const Term& sched) {
    const std::string& op = sched.op().text();
    if (sched.is("done", 0)) return sched;
    if (sched.is("cat", 2)) return rebuild(sched, {complete(statement, sched[0]), complete(statement, sched[1])});
    if (sched.is("stage", 2)) return rebuild(sched, {sched[0], complete(statement, sched[1])});
    bool plain = op == "at" || op == "par" || op == "vec" || op == "unroll";
    bool placed = op == "bind" || op == "partial";
    if ((plain && sched.size() == 2) || (placed && sched.size() == 3)) {
        std::vector<Term> children(sched.children().begin(), sched.children().end());
        children[children.size() - 2] = complete_axis(statement, loop_axis(sched));
        children.back() = complete(statement, loop_rest(sched));
        return rebuild(sched, std::move(children));
    }
    throw UserError("'" + to_string(sched) + "' is no schedule: expected (at AXIS ...), par, vec, unroll, bind, partial, stage, cat or done");
}

Term complete(const Term& nest) {
    NestParts parts = nest_parts(nest);
    parts.schedule = complete(statement_of(parts.statement), parts.schedule);
    return nest_from(parts);
}

Term nest_from(const NestParts& parts) {
    const Term nest("nest", {parts.statement, parts.schedule});
    return parts.restore.empty() ? nest : Term("restore", {Term(parts.restore), nest});
}

Term bare(const Term& term) {
    if (term.size() == 0) {
        auto name = axis_name(term);
        return name && name->extent != 0 ? Term(name->name) : term;
    }
    std::vector<Term> children;
    for (const Term& child : term.children()) children.push_back(bare(child));
    return rebuild(term, std::move(children));
}

NestParts nest_parts(const Term& nest) {
    if (nest.is("restore", 2)) {
        NestParts parts = nest_parts(nest[1]);
        if (!parts.restore.empty()) throw UserError("a nest is restored once: " + to_string(nest));
        parts.restore = nest[0].op().text();
        return parts;
    }
    if (!nest.is("nest", 2)) throw UserError("'" + to_string(nest) + "' is no nest: expected (nest STMT SCHED)");
    return {nest[0], nest[1], ""};
}

}  // namespace loopegg
