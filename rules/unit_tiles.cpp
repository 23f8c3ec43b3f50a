#include "rules/unit_tiles.hpp"

#include <algorithm>

#include "nest/schedule/unit_estimate.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t min_side = 4, min_depth = 8, max_blocks_per_core = 4;

struct UnitTile {
    std::size_t shared = 0;
    std::int64_t block = 1;
    std::size_t rows = 0;
    std::int64_t r = 1;
    std::size_t columns = 0;
    std::int64_t c = 1;
    std::size_t depth = 0;
    std::int64_t d = 1, packed = 1;
    std::vector<std::int64_t> sizes{};  // by naive loop; 1 for sums
    bool cut = false;                   // the loop of the rows is cut where its whole tiles end

    std::int64_t lanes(std::size_t loop) const { return loop == rows ? r : loop == columns ? c : 1; }
    std::int64_t elements(std::size_t loop) const { return sizes[loop] * lanes(loop); }
};

Term to_term(const NaiveLoops& nest, const UnitTile& t) {
    std::vector<Term> all;
    for (const std::int64_t n : {static_cast<std::int64_t>(t.shared), t.block, static_cast<std::int64_t>(t.rows), t.r, static_cast<std::int64_t>(t.columns),
                                 t.c, static_cast<std::int64_t>(t.depth), t.d, t.packed})
        all.emplace_back(n);
    for (std::size_t i = 0; i < t.sizes.size(); ++i)
        if (!nest.loops[i].reduction) all.emplace_back(t.sizes[i]);
    return Term(t.cut ? "cut-unit-tile" : "unit-tile", std::move(all));
}

// Whether the tile cuts every loop evenly.
bool fits(const NaiveLoops& nest, const UnitTile& t) {
    const auto moves_output = [&](std::size_t i) { return i < nest.loops.size() && !nest.loops[i].reduction; };
    if (!moves_output(t.shared) || !moves_output(t.rows) || !moves_output(t.columns) || t.rows == t.columns) return false;
    if (t.depth >= nest.loops.size() || !nest.loops[t.depth].reduction || t.d % t.packed != 0 || nest.loops[t.depth].extent % t.d != 0) return false;
    for (std::size_t i = 0; i < nest.loops.size(); ++i)
        if (nest.loops[i].extent % t.elements(i) != 0) return false;
    return t.block % t.elements(t.shared) == 0 && nest.loops[t.shared].extent % t.block == 0;
}

// A cut tile is laid over the rows that fill whole tiles, and a tile of fewer rows over the rest.
std::int64_t cut_at(const NaiveLoops& nest, const UnitTile& t) {
    const std::int64_t extent = nest.loops[t.rows].extent;
    return extent - extent % t.elements(t.rows);
}
NaiveLoops whole_tiles(const NaiveLoops& nest, const UnitTile& t) { return t.cut ? over_span(nest, t.rows, 0, cut_at(nest, t)) : nest; }
NaiveLoops left_over(const NaiveLoops& nest, const UnitTile& t) { return over_span(nest, t.rows, cut_at(nest, t), nest.loops[t.rows].extent); }
UnitTile tile_of_rest(const NaiveLoops& nest, UnitTile t) {
    t.r = nest.loops[t.rows].extent - cut_at(nest, t), t.sizes[t.rows] = 1;
    return t;
}
bool cuts(const NaiveLoops& nest, const UnitTile& t) {
    if (t.rows >= nest.loops.size() || t.shared == t.rows) return false;
    const std::int64_t extent = nest.loops[t.rows].extent, rest = extent % t.elements(t.rows);
    return rest >= 2 && rest <= t.r && rest < extent && fits(whole_tiles(nest, t), t) && fits(left_over(nest, t), tile_of_rest(nest, t));
}

std::optional<UnitTile> read_unit_tile(const NaiveLoops& nest, const Term& term) {
    const bool cut = term.op().text() == "cut-unit-tile";
    if ((term.op().text() != "unit-tile" && !cut) || term.size() < 9) return {};
    for (std::size_t i = 0; i < term.size(); ++i)
        if (!term[i].integer() || *term[i].integer() < (i == 0 || i == 2 || i == 4 || i == 6 ? 0 : 1)) return {};
    const auto number = [&](std::size_t i) { return *term[i].integer(); };
    const auto loop = [&](std::size_t i) { return static_cast<std::size_t>(number(i)); };
    UnitTile t{loop(0), number(1), loop(2), number(3), loop(4), number(5), loop(6), number(7), number(8), {}, cut};
    std::size_t next = 9;
    for (const NaiveLoop& l : nest.loops) {
        if (!l.reduction && next >= term.size()) return {};
        t.sizes.push_back(l.reduction ? 1 : number(next++));
    }
    return next == term.size() && (cut ? cuts(nest, t) : fits(nest, t)) ? std::optional(t) : std::nullopt;
}

std::vector<Term> loops_of(const NaiveLoops& nest, const UnitTile& t, std::string_view part) {
    std::vector<Term> out;
    // The digit of an axis with this many iterations, each of them `step` apart.
    const auto add = [&](const Term& axis, std::int64_t extent, std::int64_t step, std::int64_t count) {
        if (count == 1) return;
        const Term quo = step == 1 ? axis : Term("quo", {axis, Term(step)});
        out.push_back(step * count == extent ? quo : Term("rem", {quo, Term(count)}));
    };
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
        const NaiveLoop& l = nest.loops[i];
        if (l.reduction) {
            const bool deep = i == t.depth;
            if (part == "sums") add(l.axis, l.extent, deep ? t.d : 1, l.extent / (deep ? t.d : 1));
            if (part == "depth" && deep) add(l.axis, l.extent, t.packed, t.d / t.packed);
            if (part == "packed" && deep) add(l.axis, l.extent, 1, t.packed);
            continue;
        }
        const std::int64_t elements = t.elements(i), whole = i == t.shared ? t.block : l.extent;
        if (part == "shared" && i == t.shared) add(l.axis, l.extent, t.block, l.extent / t.block);
        if (part == "outer") add(l.axis, l.extent, elements, whole / elements);
        if (part == "own") add(l.axis, l.extent, t.lanes(i), t.sizes[i]);
        if ((part == "rows" && i == t.rows) || (part == "columns" && i == t.columns)) add(l.axis, l.extent, 1, t.lanes(i));
    }
    return out;
}

// The largest divisor of an extent up to `most`.
std::int64_t largest(std::int64_t extent, std::int64_t most) { return divisors(extent, most).back(); }

class Enumeration {
public:
    Enumeration(const NaiveLoops& nest, const VectorMachine& machine, UnitRows rows, std::size_t most)
        : nest_(nest), machine_(machine), cut_(rows == UnitRows::cut), max_(most) {}

    void of_unit(const MatrixUnit& unit) {
        if (unit.operands == "int8" && grouped()) return;  // each group's inputs would need a scale of their own
        unit_ = &unit;
        UnitTile t;
        t.packed = unit.packed;
        std::optional<std::size_t> sum;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].reduction && (!sum || nest_.loops[i].extent > nest_.loops[*sum].extent)) sum = i;
        if (!sum) return;
        t.depth = *sum, t.d = largest(nest_.loops[*sum].extent, unit.depth);
        if (t.d < min_depth || t.d % unit.packed != 0) return;
        for (std::size_t rows = 0; rows < nest_.loops.size(); ++rows)
            for (std::size_t columns = 0; columns < nest_.loops.size(); ++columns)
                if (opposite(rows, columns)) of_sides(t, rows, columns);
    }

    std::vector<Term> cheapest() {
        std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        std::vector<Term> out;
        for (const auto& [cost, tile] : found_)
            if (out.size() < max_) out.push_back(to_term(nest_, tile));
        return out;
    }

private:
    // One loop moves the first operand alone, and the other loop the second alone.
    bool opposite(std::size_t a, std::size_t b) const {
        const NaiveLoop &x = nest_.loops[a], &y = nest_.loops[b];
        return !x.reduction && !y.reduction && x.moves(0) != x.moves(1) && y.moves(0) != y.moves(1) && x.moves(0) != y.moves(0);
    }
    bool grouped() const {
        return std::any_of(nest_.loops.begin(), nest_.loops.end(), [](const NaiveLoop& l) { return !l.reduction && l.moves(0) && l.moves(1); });
    }
    bool neighbours(std::size_t loop) const {  // in every operand that the loop moves, and that is no weight
        for (std::size_t r = 0; r < 2; ++r)
            for (const std::int64_t stride : nest_.loops[loop].strides[r])
                if (nest_.innermost[r] && stride > 1) return false;
        return true;
    }

    void of_sides(UnitTile t, std::size_t rows, std::size_t columns) {
        if (!neighbours(columns)) return;
        t.rows = rows, t.columns = columns, t.cut = cut_;
        t.r = largest(nest_.loops[rows].extent, unit_->rows), t.c = largest(nest_.loops[columns].extent, unit_->columns);
        if (cut_) {
            if (2 * t.r > unit_->rows || nest_.loops[rows].extent <= unit_->rows) return;  // a tile fills at least half of the unit without a cut
            t.r = unit_->rows;
        }
        if (t.r < std::min(min_side, unit_->rows) || t.c < std::min(min_side, unit_->columns)) return;
        t.sizes.assign(nest_.loops.size(), 1);
        of_blocks(t);
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            for (std::size_t k = i + 1; k < nest_.loops.size(); ++k) {
                if (nest_.loops[i].reduction || nest_.loops[k].reduction) continue;
                for (const std::int64_t a : {1, 2, 3, 4})
                    for (const std::int64_t b : {1, 2, 3, 4}) {
                        if (a * b > std::max<std::int64_t>(1, unit_->tiles / 2) || a * b == 1) continue;
                        t.sizes[i] = a, t.sizes[k] = b;
                        of_blocks(t);
                    }
                t.sizes[i] = t.sizes[k] = 1;
            }
    }

    void of_blocks(UnitTile& t) {
        for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
            if (nest_.loops[i].reduction || (cut_ && i == t.rows)) continue;
            t.shared = i;
            const std::int64_t elements = t.elements(i), pieces = nest_.loops[i].extent / elements;
            if (elements * pieces != nest_.loops[i].extent || (pieces == 1 && i > 0)) continue;
            for (const std::int64_t blocks : divisors(pieces, max_blocks_per_core * machine_.cores)) {
                t.block = nest_.loops[i].extent / blocks;
                if ((blocks > 1 || pieces == 1) && (cut_ ? cuts(nest_, t) : fits(nest_, t)))
                    found_.emplace_back(unit_cost(nest_, shape_of(t), *unit_, machine_), t);
            }
        }
    }

    UnitShape shape_of(const UnitTile& t) const {
        UnitShape s;
        s.rows = static_cast<double>(t.r), s.columns = static_cast<double>(t.c), s.depth = static_cast<double>(t.d);
        s.columns_loop = t.columns;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i) s.own *= static_cast<double>(t.sizes[i]);
        for (std::size_t r = 0; r < 2; ++r)
            for (std::size_t i = 0; i < nest_.loops.size(); ++i)
                if (nest_.loops[i].moves(r)) s.loaded[r] *= static_cast<double>(t.sizes[i]);
        s.tasks = static_cast<double>(nest_.loops[t.shared].extent / t.block);
        s.own_weights = nest_.loops[t.shared].weights_only;
        s.copies = s.own_weights ? s.tasks : 1;
        return s;
    }

    const NaiveLoops& nest_;
    const VectorMachine& machine_;
    const bool cut_;
    const std::size_t max_;
    const MatrixUnit* unit_ = nullptr;
    std::vector<std::pair<double, UnitTile>> found_;
};

}  // namespace

std::vector<Term> unit_tiles(const Statement& statement, const NaiveLoops& nest, const VectorMachine& machine, UnitRows rows, std::size_t most) {
    const bool product = statement.combine == Combine::sum && statement.reads.size() == 2 && statement.coefficients.empty() && statement.value.is("*", 2);
    // One operand is copied into the layout of the unit when the nest runs, and the other, a weight, when it is compiled.
    const bool weighted = product && (statement.buffers[static_cast<std::size_t>(statement.reads[0].buffer)].kind == BufferKind::weight) !=
                                         (statement.buffers[static_cast<std::size_t>(statement.reads[1].buffer)].kind == BufferKind::weight);
    if (!weighted || most == 0) return {};
    Enumeration all(nest, machine, rows, most);
    for (const MatrixUnit& unit : machine.units) all.of_unit(unit);
    return all.cheapest();
}

std::int64_t words_of_tile(const Term& tile) { return tile.size() > 8 ? tile[8].integer().value_or(0) : 0; }

std::optional<std::vector<Term>> part_of_unit(const NaiveLoops& nest, const Term& term, std::string_view part) {
    const auto tile = read_unit_tile(nest, term);
    if (!tile || std::find(unit_parts.begin(), unit_parts.end(), part) == unit_parts.end()) return {};
    return loops_of(whole_tiles(nest, *tile), *tile, part);
}

std::optional<std::vector<Term>> part_of_unit_rest(const NaiveLoops& nest, const Term& term, std::string_view part) {
    const auto tile = read_unit_tile(nest, term);
    if (!tile || !tile->cut || std::find(unit_parts.begin(), unit_parts.end(), part) == unit_parts.end()) return {};
    return loops_of(left_over(nest, *tile), tile_of_rest(nest, *tile), part);
}

}  // namespace loopegg
