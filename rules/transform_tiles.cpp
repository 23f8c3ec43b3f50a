#include "rules/transform_tiles.hpp"

#include <algorithm>

#include "nest/term/axis.hpp"

namespace loopegg {

std::vector<Term> transform_tiles(const Statement& statement, const VectorMachine& machine, TransformKind kind) {
    std::vector<Term> out;
    if (statement.coefficients.empty() || (statement.axis("u") >= 0) != (kind == TransformKind::input) || statement.axis("c") < 0) return out;
    const std::int64_t channels = statement.axes[static_cast<std::size_t>(statement.axis("c"))].extent;
    for (const std::int64_t lanes : {machine.lanes, 2 * machine.lanes, machine.lanes / 2, machine.lanes / 4})
        if (lanes >= 2 && channels % lanes == 0) out.push_back(Term("transform-tile", {Term(lanes)}));
    return out;
}

std::optional<std::vector<Term>> part_of_transform(const NaiveLoops& nest, const Term& tile, std::string_view part) {
    if (!tile.is("transform-tile", 1) || !tile[0].integer()) return {};
    if (std::find(transform_parts.begin(), transform_parts.end(), part) == transform_parts.end()) return {};
    const std::int64_t lanes = *tile[0].integer();
    std::vector<Term> out;
    const auto add = [&](std::string_view name) {
        for (const NaiveLoop& l : nest.loops)
            if (const auto leaf = axis_name(l.axis); leaf && leaf->name == name) out.push_back(l.axis);
    };
    const auto channels =
        std::find_if(nest.loops.begin(), nest.loops.end(), [](const NaiveLoop& l) { return axis_name(l.axis) && axis_name(l.axis)->name == "c"; });
    if (channels == nest.loops.end()) return {};
    if (part == "blocks") {
        add("n");
        if (lanes < channels->extent) out.push_back(Term("quo", {channels->axis, Term(lanes)}));
    }
    if (part == "rows") add("th");
    if (part == "columns") add("tw");
    if (part == "taps")
        for (const char* name : {"i", "u", "j", "v", "kh", "kw"}) add(name);
    if (part == "lanes") out.push_back(lanes < channels->extent ? Term("rem", {channels->axis, Term(lanes)}) : channels->axis);
    return out;
}

}  // namespace loopegg
