#include "rules/register_tiles.hpp"

#include <algorithm>
#include <unordered_set>

namespace loopegg {
namespace {

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most) {
    std::vector<std::int64_t> out;
    for (std::int64_t k = 1; k <= std::min(n, most); ++k)
        if (n % k == 0) out.push_back(k);
    return out;
}

class Tiles {
public:
    Tiles(const NaiveLoops& nest, const VectorMachine& machine) : nest_(nest), m_(machine) {
        for (std::size_t i = 0; i < nest.loops.size(); ++i)
            if (!nest.loops[i].reduction) outputs_.push_back(i);
    }

    std::vector<RegisterTile> cheapest(std::size_t most) {
        for (std::size_t v : outputs_)
            if (nest_.loops[v].contiguous || nest_.loops[v].weights_only) along(v);
        std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        std::vector<RegisterTile> out;
        for (auto& [cost, tile] : found_)
            if (out.size() < most) out.push_back(std::move(tile));
        return out;
    }

private:
    static constexpr std::int64_t most_vectors = 4, most_alone = 8, most_third = 8;

    void along(std::size_t v) {
        const NaiveLoop& loop = nest_.loops[v];
        for (std::int64_t lanes : lane_counts(m_, loop.extent)) {
            if (outputs_.size() == 1)
                for (std::int64_t vectors : divisors(loop.extent / lanes, most_alone)) add({{{loop.axis, lanes, vectors}}});
            for (std::int64_t vectors : divisors(loop.extent / lanes, most_vectors))
                for (std::size_t o : outputs_)
                    if (o != v) beside(v, {loop.axis, lanes, vectors}, o);
        }
    }

    // A second loop, and where all of it is in the tile a third.
    void beside(std::size_t v, const RegisterTile::Part& vector, std::size_t o) {
        const NaiveLoop& other = nest_.loops[o];
        for (std::int64_t count : divisors(other.extent, m_.registers)) {
            if (count == 1) add({{vector}});
            else add({{vector, {other.axis, 1, count}}});
            if (count != other.extent) continue;
            for (std::size_t p : outputs_)
                if (p < o && p != v)
                    for (std::int64_t third : divisors(nest_.loops[p].extent, most_third))
                        if (third > 1) add({{vector, {other.axis, 1, count}, {nest_.loops[p].axis, 1, third}}});
        }
    }

    void add(RegisterTile tile) {
        if (tile.accumulators() >= m_.registers) return;
        if (!seen_.insert(to_term(tile)).second) return;
        const double cost = least_cost(tile);
        found_.emplace_back(cost, std::move(tile));
    }

    // Of the ways to share what is outside the tile and to write sums out.
    double least_cost(const RegisterTile& tile) const {
        double least = 1e300;
        for (bool all : {true, false}) {
            ScheduleShape s = plain_shape(nest_);
            std::optional<std::size_t> first;
            for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
                const NaiveLoop& l = nest_.loops[i];
                const RegisterTile::Part part = tile.of(l.axis);
                s.body[i] = l.reduction ? unrolled_steps(nest_, i, all) : part.count;
                s.lanes[i] = part.lanes;
                if (!l.reduction && !first && l.extent > part.elements()) first = i;
            }
            s.copied = true;
            const auto shared_by = [&](std::size_t loop, double tasks, bool inside) {
                ScheduleShape t = s;
                t.tasks = tasks, t.shared[loop] = true, t.copied_inside = inside;
                least = std::min(least, shape_cost(nest_, t, m_));
            };
            const auto pieces = [&](std::size_t i) { return static_cast<double>(nest_.loops[i].extent) / static_cast<double>(tile.of(nest_.loops[i].axis).elements()); };
            if (first) shared_by(*first, pieces(*first), false);
            else least = std::min(least, shape_cost(nest_, s, m_));
            if (const auto v = nest_.find(tile.vector_axis()); v && pieces(*v) > 1) shared_by(*v, pieces(*v), false);
            if (const auto row = nest_.row_loop(); row && tile.of(nest_.loops[*row].axis).elements() == 1)
                for (std::int64_t rows : divisors(nest_.loops[*row].extent, 8)) shared_by(*row, static_cast<double>(nest_.loops[*row].extent) / static_cast<double>(rows), true);
        }
        return least;
    }

    const NaiveLoops& nest_;
    const VectorMachine& m_;
    std::vector<std::size_t> outputs_;
    std::unordered_set<Term> seen_;
    std::vector<std::pair<double, RegisterTile>> found_;
};

}  // namespace

RegisterTile::Part RegisterTile::of(const Term& axis) const {
    for (const Part& p : parts)
        if (p.axis == axis) return p;
    return {axis};
}

std::int64_t RegisterTile::accumulators() const {
    std::int64_t all = 1;
    for (const Part& p : parts) all *= p.count;
    return all;
}

Term to_term(const RegisterTile& tile) {
    std::vector<Term> children{tile.parts[0].axis, Term(tile.parts[0].lanes), Term(tile.parts[0].count)};
    for (std::size_t i = 1; i < tile.parts.size(); ++i) children.push_back(tile.parts[i].axis), children.push_back(Term(tile.parts[i].count));
    return Term("tile", std::move(children));
}

std::optional<RegisterTile> read_tile(const Term& term) {
    if (term.op().text() != "tile" || term.size() < 3 || term.size() % 2 == 0 || !term[1].integer() || !term[2].integer()) return {};
    RegisterTile tile{{{term[0], *term[1].integer(), *term[2].integer()}}};
    for (std::size_t i = 3; i < term.size(); i += 2) {
        if (!term[i + 1].integer()) return {};
        tile.parts.push_back({term[i], 1, *term[i + 1].integer()});
    }
    return tile;
}

std::vector<RegisterTile> register_tiles(const NaiveLoops& nest, const VectorMachine& machine, std::size_t most) { return Tiles(nest, machine).cheapest(most); }

std::vector<std::int64_t> lane_counts(const VectorMachine& machine, std::int64_t extent) {
    std::vector<std::int64_t> out;
    for (std::int64_t lanes : {machine.lanes, machine.lanes / 2, machine.lanes / 4})
        if (lanes >= 2 && extent % lanes == 0) out.push_back(lanes);
    if (extent % machine.lanes == 0) return out;
    // Extents such as 7 or 56: the widest that divides, up to two registers.
    for (std::int64_t lanes = std::min<std::int64_t>(extent, 2 * machine.lanes); lanes >= 2; --lanes)
        if (extent % lanes == 0) {
            if (std::find(out.begin(), out.end(), lanes) == out.end()) out.insert(out.begin(), lanes);
            break;
        }
    return out;
}

std::int64_t unrolled_steps(const NaiveLoops& nest, std::size_t reduction, bool all) {
    constexpr std::int64_t small = 8, steps = 4;   // of one that is too long for all of it
    const std::int64_t extent = nest.loops[reduction].extent;
    const bool innermost = nest.innermost_reduction() == reduction;
    if (extent <= small) return innermost || all ? extent : 1;
    return innermost && extent % steps == 0 ? steps : 1;
}

}  // namespace loopegg
