#include "rules/tile_contracts.hpp"

#include <algorithm>

#include "nest/term/axis.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

using RolesOfParts = std::vector<TilePart>;
constexpr PartRole parallel = PartRole::parallel, summed = PartRole::sum, mixed = PartRole::mixed;

const RolesOfParts register_roles{{"shared", parallel}, {"outer", parallel}, {"sums", summed}, {"window", summed}, {"own", parallel}, {"lanes", parallel}};
const RolesOfParts element_roles{{"shared", parallel}, {"steps", parallel}, {"lanes", parallel}};
const RolesOfParts row_roles{{"shared", parallel}, {"steps", summed}, {"lanes", summed}};
const RolesOfParts transform_roles{{"blocks", parallel}, {"rows", parallel}, {"columns", parallel}, {"taps", mixed}, {"lanes", parallel}};
const RolesOfParts block_roles{{"blocks", parallel}, {"shared-sums", summed}, {"chunks", summed}, {"channel-threads", parallel}, {"threads", parallel},
                               {"own", parallel},    {"chunk", summed},       {"window", summed}, {"long-window", summed}};
const RolesOfParts tensor_roles{{"blocks", parallel}, {"shared-sums", summed},  {"chunks", summed},     {"warps", parallel},
                                {"lanes", parallel},  {"products", parallel},   {"fragment", parallel}, {"long-window", summed},
                                {"window", summed},   {"tensor-chunk", summed}, {"tensor-sum", summed}};
const RolesOfParts unit_roles{{"shared", parallel}, {"outer", parallel}, {"sums", summed},      {"own", parallel},
                              {"rows", parallel},   {"depth", summed},   {"columns", parallel}, {"packed", summed}};
const std::vector<std::pair<std::string_view, std::string_view>> apart{
    {"channel-threads", "apart-channel-threads"}, {"threads", "apart-threads"}, {"own", "apart-own"}};

TileContract registers(std::string_view list, std::string_view rest = {}) { return {list, "tile", rest, register_roles, {"sums", "window"}}; }
TileContract blocks(std::string_view list, std::vector<std::string_view> empty) {
    return {list, "block", {}, block_roles, {"shared-sums", "chunks", "chunk", "long-window", "window"}, std::move(empty), apart};
}

bool is_reduction(const Term& axis) {
    const auto leaves = iterators_of(axis);
    return !leaves.empty() && std::all_of(leaves.begin(), leaves.end(), [](const Term& t) { return role_of(axis_name(t)->name) == AxisRole::reduction; });
}
bool is_parallel(const Term& axis) {
    const auto leaves = iterators_of(axis);
    const auto moves = [](const Term& t) { return role_of(axis_name(t)->name) == AxisRole::parallel; };
    // Along a diagonal with an axis that moves the output, different values mean different outputs.
    if (axis.is("diag", 3)) return is_parallel(axis[1]) || is_parallel(axis[2]);
    if (axis.is("pair", 2)) return is_parallel(axis[0]) && is_parallel(axis[1]);
    if (axis.size() > 0) return is_parallel(axis[0]);
    return std::all_of(leaves.begin(), leaves.end(), moves);
}

// The naive loop that an axis is a digit of.
std::optional<std::size_t> loop_of(const NaiveLoops& nest, const AxisDigit& digit) {
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
        const AxisDigit whole = normal_axis(nest.loops[i].axis);
        if (whole.base == digit.base && whole.stride <= digit.stride && digit.limit <= whole.limit) return i;
    }
    return {};
}

// Whether these axes, outermost first, go through the sums of the naive loops in their order.
bool in_naive_order(const NaiveLoops& nest, const std::vector<Term>& axes) {
    std::optional<std::size_t> loop;
    std::int64_t reached = 0;  // the digits of that loop that are left
    for (const Term& axis : axes) {
        if (is_parallel(axis)) continue;
        const AxisDigit digit = normal_axis(axis);
        if (digit.extent() == 1) continue;
        const auto here = loop_of(nest, digit);
        if (!here || (loop && *here < *loop) || (loop == here && digit.limit > reached)) return false;
        loop = here, reached = digit.stride;
    }
    return true;
}

}  // namespace

std::span<const TileContract> tile_contracts() {
    static const std::vector<TileContract> all{
        registers("register-tiles"),
        registers("row-tiles"),
        registers("weight-tiles"),
        registers("channel-tiles"),
        registers("block-tiles"),
        registers("copied-row-tiles"),
        registers("cut-tiles", "rest"),
        {"element-sweeps", "sweep", {}, element_roles},
        {"row-sweeps", "sweep", {}, row_roles, {"steps", "lanes"}},
        {"cut-element-sweeps", "sweep", "sweep-rest", element_roles},
        {.list = "cut-row-sweeps", .parts_of = "sweep", .rest_of = "sweep-rest", .parts = row_roles, .sums = {"steps", "lanes"}, .cuts_a_sum = true},
        {"input-transforms", "transform", {}, transform_roles, {"taps"}},
        {"output-transforms", "transform", {}, transform_roles, {"taps"}},
        blocks("shared-tiles", {"shared-sums"}),
        blocks("split-tiles", {}),
        blocks("plain-tiles", {"shared-sums", "chunks"}),
        {"tensor-tiles", "block", {}, tensor_roles, {}, {"shared-sums"}},
        {"split-tensor-tiles", "block", {}, tensor_roles},
        {"unit-tiles", "unit", {}, unit_roles},
        {"cut-unit-tiles", "unit", "unit-rest", unit_roles},
    };
    return all;
}

const TileContract* contract_of_list(std::string_view list) {
    const auto all = tile_contracts();
    const auto found = std::find_if(all.begin(), all.end(), [&](const TileContract& c) { return c.list == list; });
    return found == all.end() ? nullptr : &*found;
}

bool keeps_contract(const TileContract& contract, const NaiveLoops& nest, const LoopsOfPart& loops, bool strict_fp) {
    for (const TilePart& part : contract.parts) {
        const std::vector<Term> axes = loops(part.name);
        if (!axes.empty() && std::find(contract.empty.begin(), contract.empty.end(), part.name) != contract.empty.end()) return false;
        if (part.role == summed && !std::all_of(axes.begin(), axes.end(), is_reduction)) return false;
        if (part.role == parallel && !std::all_of(axes.begin(), axes.end(), is_parallel)) return false;
    }
    if (!strict_fp) return true;
    std::vector<Term> sums;
    for (const std::string_view part : contract.sums)
        for (Term& axis : loops(part)) sums.push_back(std::move(axis));
    return in_naive_order(nest, sums);
}

}  // namespace loopegg
