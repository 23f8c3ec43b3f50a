#include "rules/register_tiles.hpp"

#include <algorithm>
#include <span>
#include <tuple>

#include "nest/schedule/cpu_estimate.hpp"

namespace loopegg {
namespace {

constexpr std::array<const char*, 7> shared_words{"first", "rows", "weights", "channels", "blocks", "cut", "copied"};
constexpr std::int64_t short_sum = 8, steps_of_a_long_one = 4, few = 4;

struct RegisterTile {
    SharedLoop shared = SharedLoop::first;
    std::size_t along = 0;
    std::int64_t lanes = 1, rows = 0, window = 1;
    std::vector<std::int64_t> sizes;  // by naive loop; 1 for sums

    std::int64_t elements(std::size_t loop) const { return sizes[loop] * (loop == along ? lanes : 1); }
    bool shares_rows() const { return shared == SharedLoop::rows || shared == SharedLoop::copied; }
    bool shares_blocks() const { return shared == SharedLoop::blocks || shared == SharedLoop::cut; }
    std::int64_t accumulators() const {
        std::int64_t all = 1;
        for (std::int64_t s : sizes) all *= s;
        return all;
    }
};

Term to_term(const NaiveLoops& nest, const RegisterTile& t) {
    std::vector<Term> all{Term(shared_words[static_cast<std::size_t>(t.shared)]), Term(static_cast<std::int64_t>(t.along)), Term(t.lanes), Term(t.rows),
                          Term(t.window)};
    for (std::size_t i = 0; i < t.sizes.size(); ++i)
        if (!nest.loops[i].reduction) all.emplace_back(t.sizes[i]);
    return Term("register-tile", std::move(all));
}

std::optional<RegisterTile> read_register_tile(const NaiveLoops& nest, const Term& term) {
    if (term.op().text() != "register-tile" || term.size() < 5) return {};
    const auto word = std::find(shared_words.begin(), shared_words.end(), term[0].op().text());
    if (word == shared_words.end()) return {};
    for (std::size_t i = 1; i < term.size(); ++i)
        if (!term[i].integer() || *term[i].integer() < 0) return {};
    RegisterTile t{static_cast<SharedLoop>(word - shared_words.begin()),
                   static_cast<std::size_t>(*term[1].integer()),
                   *term[2].integer(),
                   *term[3].integer(),
                   *term[4].integer(),
                   {}};
    std::size_t next = 5;
    for (const NaiveLoop& l : nest.loops) {
        if (!l.reduction && next >= term.size()) return {};
        t.sizes.push_back(l.reduction ? 1 : *term[next++].integer());
        if (t.sizes.back() < 1) return {};
    }
    if (t.along >= nest.loops.size() || next != term.size() || t.lanes < 1 || (t.shares_rows() && (t.rows < 1 || !nest.row_loop()))) return {};
    if (t.shared == SharedLoop::cut && !end_of_whole_vectors(nest.loops[t.along], t.lanes)) return {};
    return t;
}

// How many iterations of a sum are written out. Only the innermost `window` sums are, because others would not make the innermost body any longer.
std::int64_t written_out(const NaiveLoops& nest, std::int64_t window, std::size_t sum) {
    std::int64_t inside = 0;
    for (std::size_t i = sum + 1; i < nest.loops.size(); ++i) inside += nest.loops[i].reduction;
    const std::int64_t extent = nest.loops[sum].extent;
    if (inside >= window) return 1;
    if (extent <= short_sum) return extent;
    return inside == 0 && extent % steps_of_a_long_one == 0 ? steps_of_a_long_one : 1;
}

// The windows to try: all innermost sums that are short, and the innermost sum alone.
std::vector<std::int64_t> windows(const NaiveLoops& nest) {
    std::int64_t count = 0;
    for (std::size_t i = nest.loops.size(); i-- > 0;) {
        if (!nest.loops[i].reduction) continue;
        if (nest.loops[i].extent > short_sum) break;
        ++count;
    }
    return count > 1 ? std::vector<std::int64_t>{count, 1} : std::vector<std::int64_t>{1};
}

// Output loops that are left outside of the tile, in order.
std::vector<std::size_t> outside(const NaiveLoops& nest, const RegisterTile& t) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < nest.loops.size(); ++i)
        if (!nest.loops[i].reduction && nest.loops[i].extent > t.elements(i)) all.push_back(i);
    return all;
}

// A cut tile is laid over the whole vectors of the lanes' loop, and another tile over the rest.
std::int64_t cut_at(const NaiveLoops& nest, const RegisterTile& t) { return *end_of_whole_vectors(nest.loops[t.along], t.lanes); }
NaiveLoops whole_vectors(const NaiveLoops& nest, const RegisterTile& t) { return over_span(nest, t.along, 0, cut_at(nest, t)); }
NaiveLoops left_over(const NaiveLoops& nest, const RegisterTile& t) { return over_span(nest, t.along, cut_at(nest, t), nest.loops[t.along].extent); }
// The tile of the rest: one vector for each row.
RegisterTile tile_of_rest(const NaiveLoops& nest, RegisterTile t) {
    t.lanes = nest.loops[t.along].extent - cut_at(nest, t), t.sizes[t.along] = 1;
    return t;
}

void write_out(const NaiveLoops& nest, std::int64_t window, CpuShape& shape) {
    for (std::size_t i = 0; i < nest.loops.size(); ++i)
        if (nest.loops[i].reduction) shape.body[i] = written_out(nest, window, i);
}

// The shape of a tile, without the window and the number of rows.
CpuShape shape_of(const NaiveLoops& nest, const RegisterTile& t) {
    CpuShape s;
    s.body = t.sizes, s.staged_output = nest.sums();
    const std::vector<std::size_t> outer = outside(nest, t);
    if (t.lanes > 1)
        s.along = t.along, s.lanes = t.lanes;
    else if (!outer.empty() && nest.loops[outer.back()].contiguous)
        s.along_by_compiler = outer.back();
    s.shared = !outer.empty();
    const auto pieces = [&](std::size_t i) { return static_cast<double>(nest.loops[i].extent) / static_cast<double>(t.elements(i)); };
    if (t.shares_blocks()) {
        for (std::size_t i : outer)
            if (i != t.along) s.tasks *= pieces(i);
    } else if (!outer.empty())
        s.tasks = pieces(t.shared == SharedLoop::weights ? t.along : outer[0]);
    s.weights_stay = t.shared == SharedLoop::weights;
    s.gathers = t.shared == SharedLoop::copied;
    s.copy = t.shares_rows() ? CpuShape::Copy::rows : t.shared == SharedLoop::channels ? CpuShape::Copy::own : CpuShape::Copy::once;
    return s;
}

// How long vectors along a loop may be: the machine's length, a half or a quarter of it, where these divide the extent; and the longest divisor where it is
// longer than all of these that divide.
std::vector<std::int64_t> lanes_along(const NaiveLoop& loop, const VectorMachine& m) {
    if (!loop.contiguous && !loop.weights_only) return {};
    std::vector<std::int64_t> all;
    const std::int64_t run = loop.contiguous ? loop.neighbours : loop.extent;  // a vector stays inside a block
    for (std::int64_t lanes : {m.lanes, m.lanes / 2, m.lanes / 4})
        if (lanes >= 2 && run % lanes == 0) all.push_back(lanes);
    const std::int64_t longest = divisors(run, 2 * m.lanes).back();
    if (longest > 1 && (all.empty() || (all.front() < m.lanes && longest > all.front()))) all.push_back(longest);
    return all;
}

// The same for a loop that is cut where its whole vectors end.
std::vector<std::int64_t> lanes_of_cut(const NaiveLoop& loop, const VectorMachine& m) {
    if (!loop.contiguous && !loop.weights_only) return {};
    std::vector<std::int64_t> all;
    for (std::int64_t lanes : {m.lanes, m.lanes / 2, m.lanes / 4})
        if (lanes >= 2 && end_of_whole_vectors(loop, lanes)) all.push_back(lanes);
    return all;
}

// Every tile that fits the registers: vectors along one loop, some iterations of a second loop, and, where these are few or all, some iterations of a third
// loop before it.
template <class Add>
void every_tile(const NaiveLoops& nest, const VectorMachine& m, SharedLoop shared, const Add& add) {
    const std::vector<NaiveLoop>& loops = nest.loops;
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < loops.size(); ++i)
        if (!loops[i].reduction) outputs.push_back(i);
    {  // one output at a time, for loops that the compiler makes vectors of, and for loops that no vector fits
        RegisterTile t;
        t.along = outputs.empty() ? 0 : outputs.back(), t.sizes.assign(loops.size(), 1);
        add(t);
    }
    for (std::size_t v : outputs) {
        for (std::int64_t lanes : shared == SharedLoop::cut ? lanes_of_cut(loops[v], m) : lanes_along(loops[v], m)) {
            RegisterTile t;
            t.along = v, t.lanes = lanes, t.sizes.assign(loops.size(), 1);
            const auto offer = [&] {
                if (t.accumulators() * ((lanes + m.lanes - 1) / m.lanes) < m.registers) add(t);
            };
            for (std::int64_t vectors : divisors(loops[v].extent / lanes, outputs.size() == 1 ? 8 : 4)) {
                t.sizes[v] = vectors;
                offer();
                for (std::size_t o : outputs) {
                    if (o == v) continue;
                    for (std::int64_t size : divisors(loops[o].extent, m.registers)) {
                        if (size == 1) continue;
                        t.sizes[o] = size;
                        offer();
                        for (std::size_t p : outputs) {
                            if (p >= o || p == v || (size > few && size != loops[o].extent)) continue;
                            for (std::int64_t k : divisors(loops[p].extent, 8)) {
                                if (k == 1) continue;
                                t.sizes[p] = k;
                                offer();
                            }
                            t.sizes[p] = 1;
                        }
                    }
                    t.sizes[o] = 1;
                }
            }
        }
    }
}

std::optional<std::vector<Term>> loops_of(const NaiveLoops& nest, const RegisterTile& tile, std::string_view part) {
    if (std::find(tile_parts.begin(), tile_parts.end(), part) == tile_parts.end()) return {};
    const auto quo = [](const Term& axis, std::int64_t k) { return k == 1 ? axis : Term("quo", {axis, Term(k)}); };
    const auto rem = [](const Term& axis, std::int64_t k) { return Term("rem", {axis, Term(k)}); };
    std::vector<Term> out;
    if (part == "shared" || part == "outer") {
        const auto row = nest.row_loop();
        Term first;
        std::vector<Term> blocks;  // of the part that is asked for, where the cores share all blocks
        for (std::size_t i : outside(nest, tile)) {
            const NaiveLoop& l = nest.loops[i];
            const bool of_rows = tile.shares_rows() && row == i;
            if (of_rows && tile.rows < l.extent) {
                first = quo(l.axis, tile.rows);
                if (tile.rows > 1) out.push_back(rem(l.axis, tile.rows));
                continue;
            }
            const Term outer = quo(l.axis, tile.elements(i));
            if ((i == tile.along) == (part == "outer")) blocks.push_back(outer);
            if (tile.shared == SharedLoop::weights && i == tile.along)
                first = outer;
            else
                out.push_back(outer);
        }
        if (tile.shares_blocks()) return blocks;
        if (!first && !out.empty()) first = out.front(), out.erase(out.begin());
        if (part == "outer") return out;
        return first ? std::vector{first} : std::vector<Term>{};
    }
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
        const NaiveLoop& l = nest.loops[i];
        if (l.reduction) {
            const std::int64_t written = written_out(nest, tile.window, i);
            if (part == "sums" && written < l.extent) out.push_back(quo(l.axis, written));
            if (part == "window" && written > 1) out.push_back(written < l.extent ? rem(l.axis, written) : l.axis);
            continue;
        }
        const std::int64_t lanes = i == tile.along ? tile.lanes : 1, size = tile.sizes[i];
        if (part == "own" && size > 1) out.push_back(l.extent > tile.elements(i) ? rem(quo(l.axis, lanes), size) : quo(l.axis, lanes));
        const bool rest = tile.shared == SharedLoop::cut && i == tile.along;  // a span of one iteration is a loop too, because it shows which one
        if (part == "lanes" && (lanes > 1 || rest)) out.push_back(l.extent > lanes ? rem(l.axis, lanes) : l.axis);
    }
    return out;
}

}  // namespace

std::vector<Term> register_tiles(const NaiveLoops& nest, const VectorMachine& machine, SharedLoop shared, std::size_t most) {
    if (!nest.sums() || most == 0) return {};
    // One of the cheapest tiles so far. Of two tiles that cost the same, the one that was found first is better.
    struct Found {
        double cost;
        std::size_t number;
        RegisterTile tile;
        bool operator<(const Found& other) const { return std::tie(cost, number) < std::tie(other.cost, other.number); }
    };
    std::vector<Found> best;  // a heap with the dearest on top
    std::size_t number = 0;
    const std::vector<std::int64_t> all_windows = windows(nest);
    const auto row = nest.row_loop();
    // A nest that is cut has the shapes of its whole vectors and of its rest, each with its part of the instances.
    struct Part {
        double share;
        CpuShape shape;
    };
    const auto offer = [&](RegisterTile& t, std::span<Part> parts) {
        for (std::int64_t w : all_windows) {
            t.window = w;
            double cost = 0;
            for (Part& p : parts) {
                write_out(nest, w, p.shape);
                cost += p.share * cpu_cost(nest, p.shape, machine);
            }
            ++number;
            if (best.size() == most && cost >= best.front().cost) continue;
            best.push_back({cost, number, t});
            std::push_heap(best.begin(), best.end());
            if (best.size() > most) std::pop_heap(best.begin(), best.end()), best.pop_back();
        }
    };
    if (shared == SharedLoop::copied && (nest.padded || !nest.scattered)) return {};
    every_tile(nest, machine, shared, [&](RegisterTile& t) {
        t.shared = shared, t.rows = 0;
        if (shared == SharedLoop::cut) {
            if (t.lanes == 1 || nest.padded) return;
            const double whole = static_cast<double>(cut_at(nest, t)) / static_cast<double>(nest.loops[t.along].extent);
            Part parts[] = {{whole, shape_of(whole_vectors(nest, t), t)}, {1 - whole, shape_of(left_over(nest, t), tile_of_rest(nest, t))}};
            if (parts[1].shape.shared) offer(t, parts);
            return;
        }
        Part alone[] = {{1, shape_of(nest, t)}};
        const std::vector<std::size_t> outer = outside(nest, t);
        if (t.shares_rows()) {
            if (!row || row == t.along || t.sizes[*row] > 1) return;
            CpuShape& shape = alone[0].shape;
            for (std::int64_t rows : divisors(nest.loops[*row].extent, 8)) {
                if (rows == nest.loops[*row].extent) continue;
                t.rows = shape.rows = rows, shape.tasks = static_cast<double>(nest.loops[*row].extent / rows);
                offer(t, alone);
            }
            return;
        }
        if (shared == SharedLoop::weights &&
            (!nest.loops[t.along].weights_only || outer.empty() || outer[0] == t.along || nest.loops[t.along].extent <= t.elements(t.along)))
            return;
        if (shared == SharedLoop::channels &&
            (!nest.padded || outer.empty() || nest.loops[outer[0]].weights_only || nest.loops[outer[0]].contiguous || outer[0] == row))
            return;
        if (shared == SharedLoop::blocks) {
            const auto others = std::count_if(outer.begin(), outer.end(), [&](std::size_t i) { return i != t.along; });
            if (t.lanes == 1 || nest.padded || others < 2 || outer[0] == t.along || nest.loops[outer[0]].extent / t.elements(outer[0]) % machine.cores == 0)
                return;
        }
        offer(t, alone);
    });
    std::sort_heap(best.begin(), best.end());
    std::vector<Term> out;
    for (const Found& f : best) out.push_back(to_term(nest, f.tile));
    return out;
}

std::optional<std::vector<Term>> part_of_tile(const NaiveLoops& nest, const Term& term, std::string_view part) {
    const auto tile = read_register_tile(nest, term);
    if (!tile) return {};
    return loops_of(tile->shared == SharedLoop::cut ? whole_vectors(nest, *tile) : nest, *tile, part);
}

std::optional<std::vector<Term>> part_of_rest(const NaiveLoops& nest, const Term& term, std::string_view part) {
    const auto tile = read_register_tile(nest, term);
    if (!tile || tile->shared != SharedLoop::cut) return {};
    return loops_of(left_over(nest, *tile), tile_of_rest(nest, *tile), part);
}

}  // namespace loopegg
