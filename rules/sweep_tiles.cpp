#include "rules/sweep_tiles.hpp"

#include <algorithm>

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
    const Shape& shape = s.buffers[static_cast<std::size_t>(s.reads[*moved].buffer)].shape;
    std::size_t last = shape.size();
    while (last > 0 && shape[last - 1] == 1) --last;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (loop.strides[*moved][d] != (d + 1 == last ? 1 : 0)) return false;
    return true;
}

Term tile(std::int64_t lanes, std::int64_t chunk) { return Term("sweep-tile", {Term(lanes), Term(chunk)}); }

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
    const std::int64_t lanes = *tile[0].integer(), extent = nest.loops.back().extent;
    if (lanes < 1 || extent <= lanes || extent % lanes == 0) return {};
    return extent / lanes * lanes;
}

}  // namespace

std::vector<Term> sweep_tiles(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, SweepKind kind) {
    if (!sweeps(statement, nest, kind)) return {};
    const NaiveLoop& last = nest.loops.back();
    if (kind == SweepKind::rows) {
        std::vector<Term> out;
        for (const std::int64_t lanes : {machine.lanes, machine.lanes / 2, machine.lanes / 4})
            if (lanes >= 2 && last.extent % lanes == 0) out.push_back(tile(lanes, last.extent));
        return out;
    }
    // Short vectors of an awkward extent are better than none.
    const std::int64_t lanes = last.extent % machine.lanes == 0 ? machine.lanes : divisors(last.extent, 2 * machine.lanes).back();
    const bool alone = nest.loops.size() == 1;
    return {tile(lanes, alone ? lanes * divisors(last.extent / lanes, vectors_of_a_chunk).back() : last.extent)};
}

std::vector<Term> cut_sweeps(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, SweepKind kind) {
    if (!sweeps(statement, nest, kind) || nest.loops.size() < 2) return {};
    const Term cut("sweep-cut", {Term(std::int64_t{machine.lanes})});
    const NaiveLoop& last = nest.loops.back();
    if (machine.lanes < 2 || !cut_at(nest, cut) || (last.contiguous && last.neighbours != last.extent)) return {};
    return {cut};
}

std::optional<std::vector<Term>> part_of_sweep(const NaiveLoops& nest, const Term& term, std::string_view part) {
    if (const auto cut = cut_at(nest, term)) return part_of_sweep(over_span(nest, nest.loops.size() - 1, 0, *cut), tile(*term[0].integer(), *cut), part);
    if (!term.is("sweep-tile", 2) || !term[0].integer() || !term[1].integer() || nest.loops.empty()) return {};
    if (std::find(sweep_parts.begin(), sweep_parts.end(), part) == sweep_parts.end()) return {};
    const std::int64_t lanes = *term[0].integer(), chunk = *term[1].integer();
    const NaiveLoop& last = nest.loops.back();
    if (lanes < 1 || chunk < lanes || chunk % lanes != 0 || last.extent % chunk != 0) return {};
    const Term within = chunk < last.extent ? Term("rem", {last.axis, Term(chunk)}) : last.axis;
    std::vector<Term> out;
    for (std::size_t i = 0; i + 1 < nest.loops.size(); ++i)
        if ((part == "shared" && !nest.loops[i].reduction) || (part == "steps" && nest.loops[i].reduction)) out.push_back(nest.loops[i].axis);
    if (part == "shared" && chunk < last.extent) out.push_back(quo(last.axis, chunk));
    if (part == "steps" && lanes < chunk) out.push_back(quo(within, lanes));
    if (part == "lanes" && lanes > 1) out.push_back(lanes < last.extent ? Term("rem", {last.axis, Term(lanes)}) : last.axis);
    return out;
}

std::optional<std::vector<Term>> part_of_sweep_rest(const NaiveLoops& nest, const Term& term, std::string_view part) {
    const auto cut = cut_at(nest, term);
    if (!cut) return {};
    const NaiveLoops rest = over_span(nest, nest.loops.size() - 1, *cut, nest.loops.back().extent);
    const std::int64_t lanes = rest.loops.back().extent;
    if (part == "lanes") return std::vector{rest.loops.back().axis};  // also where the rest is one element
    return part_of_sweep(rest, tile(lanes, lanes), part);
}

}  // namespace loopegg
