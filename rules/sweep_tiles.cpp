#include "rules/sweep_tiles.hpp"

#include <algorithm>

#include "nest/term/axis.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t vectors_of_a_chunk = 64;

// Whether the read of one buffer alone depends on the loop, and one iteration goes to the next element of that buffer.
bool in_memory_order(const Statement& s, const NaiveLoop& loop) {
    std::optional<std::size_t> moved;
    for (std::size_t r = 0; r < s.reads.size(); ++r)
        if (loop.moves(r)) {
            if (moved || s.reads[r].padded) return false;
            moved = r;
        }
    if (!moved) return false;
    const Buffer& buffer = s.buffers[static_cast<std::size_t>(s.reads[*moved].buffer)];
    if (!buffer.blocking.empty()) return false;
    const Shape& shape = buffer.shape;
    std::size_t last = shape.size();
    while (last > 0 && shape[last - 1] == 1) --last;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (loop.strides[*moved][d] != (d + 1 == last ? 1 : 0)) return false;
    return true;
}

// How many iterations of the loop go through a block of the buffer; 0 where the loop walks no dimension in blocks.
std::int64_t walked_block(const Buffer& buffer, const std::vector<Affine>& index, const Statement& s, const NaiveLoop& loop) {
    const auto name = axis_name(loop.axis);
    if (buffer.blocking.empty() || !name) return 0;
    const auto axis = static_cast<std::size_t>(s.axis(name->name));
    const Blocking& b = buffer.blocking.back();
    return index[static_cast<std::size_t>(b.dimension)].coefficients[axis] == 1 ? b.factor : 0;
}

// The shortest block of any buffer that the loop walks; 0 where there is none.
std::int64_t walked_block(const Statement& s, const NaiveLoop& loop) {
    std::int64_t shortest = walked_block(s.buffers[0], s.write.index, s, loop);
    for (const Access& read : s.reads)
        if (const std::int64_t k = walked_block(s.buffers[static_cast<std::size_t>(read.buffer)], read.index, s, loop); k > 0)
            shortest = shortest == 0 ? k : std::min(shortest, k);
    return shortest;
}

Term tile(std::size_t along, std::int64_t lanes, std::int64_t chunk) {
    return Term("sweep-tile", {Term(static_cast<std::int64_t>(along)), Term(lanes), Term(chunk)});
}

Term quo(const Term& axis, std::int64_t k) { return k == 1 ? axis : Term("quo", {axis, Term(k)}); }

bool sweeps(const Statement& statement, const NaiveLoops& nest, SweepKind kind) {
    if (nest.loops.empty() || !statement.coefficients.empty() || statement.keeps_an_order()) return false;
    const NaiveLoop& last = nest.loops.back();
    if (kind == SweepKind::rows) return statement.combine != Combine::assign && last.reduction && in_memory_order(statement, last);
    return statement.combine == Combine::assign && !nest.sums();
}

// Where the whole vectors of the innermost loop end, if the tile is cut there.
std::optional<std::int64_t> cut_at(const NaiveLoops& nest, const Term& tile) {
    if (!tile.is("sweep-cut", 1) || !tile[0].integer() || nest.loops.empty()) return {};
    return end_of_whole_vectors(nest.loops.back(), *tile[0].integer());
}

}  // namespace

std::vector<Term> sweep_tiles(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, SweepKind kind) {
    if (!sweeps(statement, nest, kind)) return {};
    const NaiveLoop& last = nest.loops.back();
    if (kind == SweepKind::rows) {
        std::vector<Term> out;
        for (const std::int64_t lanes : {machine.lanes, machine.lanes / 2, machine.lanes / 4})
            if (lanes >= 2 && last.extent % lanes == 0) out.push_back(tile(nest.loops.size() - 1, lanes, last.extent));
        return out;
    }
    // Short vectors of an awkward extent are better than none.
    const std::int64_t lanes = last.extent % machine.lanes == 0 ? machine.lanes : divisors(last.extent, 2 * machine.lanes).back();
    const bool alone = nest.loops.size() == 1;
    std::vector<Term> out{tile(nest.loops.size() - 1, lanes, alone ? lanes * divisors(last.extent / lanes, vectors_of_a_chunk).back() : last.extent)};
    for (std::size_t i = 0; i + 1 < nest.loops.size(); ++i)
        if (const std::int64_t block = walked_block(statement, nest.loops[i]); block > 1)
            if (const std::int64_t width = divisors(block, machine.lanes).back(); nest.loops[i].extent % width == 0) out.push_back(tile(i, width, width));
    return out;
}

std::vector<Term> cut_sweeps(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, SweepKind kind) {
    if (!sweeps(statement, nest, kind) || nest.loops.size() < 2) return {};
    const Term cut("sweep-cut", {Term(std::int64_t{machine.lanes})});
    if (machine.lanes < 2 || !cut_at(nest, cut)) return {};
    return {cut};
}

std::optional<std::vector<Term>> part_of_sweep(const NaiveLoops& nest, const Term& term, std::string_view part) {
    if (const auto cut = cut_at(nest, term)) {
        const std::size_t last = nest.loops.size() - 1;
        return part_of_sweep(over_span(nest, last, 0, *cut), tile(last, *term[0].integer(), *cut), part);
    }
    if (!term.is("sweep-tile", 3) || !term[0].integer() || !term[1].integer() || !term[2].integer()) return {};
    if (std::find(sweep_parts.begin(), sweep_parts.end(), part) == sweep_parts.end()) return {};
    const std::int64_t number = *term[0].integer(), lanes = *term[1].integer(), chunk = *term[2].integer();
    if (number < 0 || number >= static_cast<std::int64_t>(nest.loops.size())) return {};
    const auto at = static_cast<std::size_t>(number), last = nest.loops.size() - 1;
    const NaiveLoop& along = nest.loops[at];
    if (lanes < 1 || chunk < lanes || chunk % lanes != 0 || along.extent % chunk != 0) return {};
    const Term within = chunk < along.extent ? Term("rem", {along.axis, Term(chunk)}) : along.axis;
    std::vector<Term> out;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
        const bool step = nest.loops[i].reduction || i == last;
        if (i == at) {
            if (part == "shared" && chunk < along.extent) out.push_back(quo(along.axis, chunk));
            if (part == "steps" && lanes < chunk) out.push_back(quo(within, lanes));
        } else if (part == (step ? "steps" : "shared")) {
            out.push_back(nest.loops[i].axis);
        }
    }
    if (part == "lanes" && lanes > 1) out.push_back(lanes < along.extent ? Term("rem", {along.axis, Term(lanes)}) : along.axis);
    return out;
}

std::optional<std::vector<Term>> part_of_sweep_rest(const NaiveLoops& nest, const Term& term, std::string_view part) {
    const auto cut = cut_at(nest, term);
    if (!cut) return {};
    const NaiveLoops rest = over_span(nest, nest.loops.size() - 1, *cut, nest.loops.back().extent);
    const std::int64_t lanes = rest.loops.back().extent;
    if (part == "lanes") return std::vector{rest.loops.back().axis};  // also where the rest is one element
    return part_of_sweep(rest, tile(rest.loops.size() - 1, lanes, lanes), part);
}

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
