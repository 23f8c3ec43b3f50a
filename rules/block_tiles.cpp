#include "rules/block_tiles.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace loopegg {
namespace {

constexpr std::int64_t longest_window = 5;

bool is_tensor(TileKind kind) { return kind == TileKind::tensor || kind == TileKind::split_tensor; }

struct Share {
    std::int64_t threads = 1, own = 1;
    std::int64_t size() const { return threads * own; }
};

// Whether a loop moves a buffer that the output channels move too. (Channels are the rows for tensor cores.)
bool moves_weights(const NaiveLoops& nest, const NaiveLoop& loop) {
    for (const NaiveLoop& l : nest.loops)
        if (!l.reduction && l.weights_only)
            for (std::size_t r = 0; r < l.strides.size(); ++r)
                if (l.moves(r) && loop.moves(r)) return true;
    return false;
}

struct BlockTile {
    std::int64_t sums = 1, chunk = 1;
    std::vector<Share> shares{};  // by output loop, in order
    std::int64_t depth = 0;       // steps of a sum that an instruction of tensor cores takes; 0: none takes part
};

Term to_term(const BlockTile& t) {
    std::vector<Term> all;
    if (t.depth > 0) all.emplace_back(t.depth);
    for (const std::int64_t n : {t.sums, t.chunk}) all.emplace_back(n);
    for (const Share& s : t.shares) all.emplace_back(s.threads), all.emplace_back(s.own);
    return Term(t.depth > 0 ? "tensor-tile" : "block-tile", std::move(all));
}

std::optional<BlockTile> read_block_tile(const Term& t) {
    const std::size_t first = t.op().text() == "tensor-tile" ? 1 : 0;
    if ((first == 0 && t.op().text() != "block-tile") || t.size() < first + 2 || (t.size() - first) % 2 != 0) return {};
    for (const Term& n : t.children())
        if (!n.integer() || *n.integer() < 1) return {};
    BlockTile tile{.sums = *t[first].integer(), .chunk = *t[first + 1].integer(), .depth = first == 1 ? *t[0].integer() : 0};
    for (std::size_t i = first + 2; i < t.size(); i += 2) tile.shares.push_back({*t[i].integer(), *t[i + 1].integer()});
    return tile;
}

// The longest sum, which threads share and which is done in chunks.
std::optional<std::size_t> main_sum(const NaiveLoops& nest) {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < nest.loops.size(); ++i)
        if (nest.loops[i].reduction && (!found || nest.loops[i].extent > nest.loops[*found].extent)) found = i;
    return found;
}

bool is_window(const NaiveLoop& l) { return l.extent <= longest_window; }

void add_digit(std::vector<Term>& out, const Term& axis, std::int64_t extent, std::int64_t stride, std::int64_t count) {
    if (count <= 1 || stride >= extent) return;
    const Term from = stride == 1 ? axis : Term("quo", {axis, Term(stride)});
    out.push_back(stride * count >= extent ? from : Term("rem", {from, Term(count)}));
}

// How the tile of one output loop is laid out for tensor cores: threads of a warp, and how many of an instruction's outputs a thread has.
struct Lanes {
    std::int64_t threads = 1, own = 1;
    bool rows = false;
};
constexpr std::int64_t warp_rows = 8, warp_columns = 4, own_rows = 2, own_columns = 2;

// One for each output loop; none where no whole instructions fit the tile. Rows are channels, on which no input depends. No weight depends on columns.
std::optional<std::vector<Lanes>> lanes_of(const NaiveLoops& nest, const BlockTile& tile) {
    std::vector<const NaiveLoop*> outputs;
    for (const NaiveLoop& l : nest.loops)
        if (!l.reduction) outputs.push_back(&l);
    if (outputs.size() != tile.shares.size()) return {};
    std::vector<Lanes> all(outputs.size());
    bool rows = false;
    std::int64_t columns = warp_columns, own = own_columns;
    for (std::size_t i = outputs.size(); i-- > 0;) {
        const Share& s = tile.shares[i];
        if (outputs[i]->weights_only) {
            if (rows || s.threads % warp_rows != 0 || s.own % own_rows != 0) continue;
            all[i] = {warp_rows, own_rows, rows = true};
        } else if (!moves_weights(nest, *outputs[i])) {
            all[i].threads = std::gcd(s.threads, columns), columns /= all[i].threads;
            if (s.own % own == 0) all[i].own = own, own = 1;
        }
    }
    return rows && columns == 1 && own == 1 ? std::optional(all) : std::nullopt;
}

// How many elements of a read so many iterations of each loop touch.
double touched(const NaiveLoops& nest, std::size_t read, const std::vector<std::int64_t>& sizes) {
    const std::size_t dimensions = nest.loops.empty() ? 0 : nest.loops[0].strides[read].size();
    double box = 1, most = 1;
    for (std::size_t d = 0; d < dimensions; ++d) {
        double wide = 1, count = 1;
        for (std::size_t i = 0; i < nest.loops.size(); ++i)
            if (const std::int64_t stride = nest.loops[i].strides[read][d]; stride > 0 && sizes[i] > 1)
                wide += static_cast<double>(stride * (sizes[i] - 1)), count *= static_cast<double>(sizes[i]);
        box *= std::min(wide, count);
    }
    for (std::size_t i = 0; i < nest.loops.size(); ++i)
        if (nest.loops[i].moves(read)) most *= static_cast<double>(sizes[i]);
    return std::min(box, most);
}

// How many lines the first warp of a block asks for when its threads read. Threads of inner loops are neighbours, and threads of channels come last.
double lines_of_read(const Statement& s, const NaiveLoops& nest, const BlockTile& tile, std::size_t read) {
    const std::vector<std::int64_t>& shape = s.buffers[static_cast<std::size_t>(s.reads[read].buffer)].shape;
    std::vector<std::int64_t> addresses, index(shape.size());
    std::int64_t threads = 1;
    for (const Share& share : tile.shares) threads = std::min(warp_threads, threads * share.threads);  // only one warp counts
    for (std::int64_t t = 0; t < threads; ++t) {
        std::fill(index.begin(), index.end(), 0);
        std::int64_t left = t;
        for (const bool channels : {false, true}) {
            std::size_t output = tile.shares.size();
            for (std::size_t i = nest.loops.size(); i-- > 0;) {
                const NaiveLoop& l = nest.loops[i];
                if (l.reduction) continue;
                const Share& share = tile.shares[--output];
                if (l.weights_only != channels) continue;
                for (std::size_t d = 0; d < index.size(); ++d) index[d] += l.strides[read][d] * share.own * (left % share.threads);
                left /= share.threads;
            }
        }
        std::int64_t address = 0;
        for (std::size_t d = 0; d < index.size(); ++d) address = address * shape[d] + index[d];
        addresses.push_back(address);
    }
    return lines_of_warp(addresses);
}

bool is_weight(const Statement& s, std::size_t read) { return s.buffers[static_cast<std::size_t>(s.reads[read].buffer)].kind == BufferKind::weight; }

GpuShape shape_of(const Statement& s, const NaiveLoops& nest, const BlockTile& t, TileKind kind, std::int64_t in_word) {
    GpuShape shape;
    std::vector<std::int64_t> block(nest.loops.size(), 1), inner(nest.loops.size(), 1);
    const auto longest = main_sum(nest);
    const bool split = kind == TileKind::split || kind == TileKind::split_tensor;
    shape.tensor = is_tensor(kind);
    shape.tensor_depth = static_cast<double>(t.depth), shape.in_word = static_cast<double>(in_word);
    std::size_t output = 0;
    double sums = 1, unrolled = 1;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
        const NaiveLoop& l = nest.loops[i];
        if (!l.reduction) {
            const Share& share = t.shares[output++];
            block[i] = share.size(), inner[i] = share.own;
            shape.blocks *= static_cast<double>(l.extent / share.size()), shape.threads *= static_cast<double>(share.threads),
                shape.outputs *= static_cast<double>(share.own);
            continue;
        }
        sums *= static_cast<double>(l.extent);
        block[i] = i == longest ? t.chunk : l.extent;
        if (i == longest && shape.tensor) inner[i] = t.depth, unrolled *= static_cast<double>(t.depth);
        if (is_window(l) && i != longest) inner[i] = l.extent, unrolled *= static_cast<double>(l.extent);
    }
    shape.sums = static_cast<double>(t.sums);
    shape.threads *= shape.sums;
    shape.steps = shape.outputs * sums / shape.sums;
    shape.steps_per_turn = shape.outputs * unrolled;
    shape.loads = 0;
    if (longest && kind != TileKind::plain) shape.chunks = static_cast<double>(nest.loops[*longest].extent / (t.sums * t.chunk));
    if (t.sums > 1) shape.shared_bytes += 4 * static_cast<std::int64_t>(shape.threads * shape.outputs);
    for (std::size_t r = 0; r < s.reads.size(); ++r) {
        const double one = touched(nest, r, inner) / shape.steps_per_turn * (shape.tensor && is_weight(s, r) ? rows_of_tensor_loads : 1);
        shape.loads += one;
        if (kind == TileKind::plain || (split && t.chunk == 1)) {
            shape.far_loads += one * shape.steps, shape.far_bytes += 4 * one * shape.steps * shape.threads * shape.blocks / 8;
            shape.far_lines += one * shape.steps * lines_of_read(s, nest, t, r);
            continue;
        }
        const double elements = touched(nest, r, block);
        shape.shared_bytes += 4 * static_cast<std::int64_t>(elements * shape.sums) / in_word;
        if (in_word > 1) {
            add_packed_copies(shape, elements, shape.threads / shape.sums, shape.chunks, shape.chunks * shape.sums * shape.blocks, is_weight(s, r));
            continue;
        }
        const double at_once = s.reads[r].padded ? 1 : 4, copies = std::ceil(elements / at_once / (shape.threads / shape.sums));
        (s.reads[r].padded ? shape.tested : shape.copied) += copies * shape.chunks;
        shape.ahead += copies * at_once;
        shape.far_bytes += 4 * elements * shape.chunks * shape.sums * shape.blocks;
    }
    shape.least_bytes = operand_bytes(s);
    return shape;
}

// The layout inside a block, from the inside out. Rows: the threads of a warp, then what a thread has. Columns: what a thread has, then the threads of a warp.
// Then instructions, then warps.
std::optional<std::vector<Term>> part_for_tensor_cores(const NaiveLoops& nest, const BlockTile& tile, std::string_view part) {
    const auto lanes = lanes_of(nest, tile);
    const auto longest = main_sum(nest);
    if (!lanes || !longest || tile.depth == 0) return {};
    std::vector<Term> out, columns;
    std::size_t output = 0;
    for (const NaiveLoop& l : nest.loops) {
        if (l.reduction) continue;
        const Share& s = tile.shares[output];
        const Lanes& of = (*lanes)[output++];
        if (part == "lanes") add_digit(of.rows ? out : columns, l.axis, l.extent, of.rows ? 1 : of.own, of.threads);
        if (part == "fragment") add_digit(of.rows ? out : columns, l.axis, l.extent, of.rows ? of.threads : 1, of.own);
        if (part == "products") add_digit(out, l.axis, l.extent, of.threads * of.own, s.own / of.own);
        if (part == "warps") add_digit(out, l.axis, l.extent, of.threads * s.own, s.threads / of.threads);
    }
    out.insert(out.end(), columns.begin(), columns.end());  // rows come first, so that threads of one group are neighbours
    const NaiveLoop& sum = nest.loops[*longest];
    if (part == "tensor-chunk") add_digit(out, sum.axis, sum.extent, tile.depth, tile.chunk / tile.depth);
    if (part == "tensor-sum") add_digit(out, sum.axis, sum.extent, 1, tile.depth);
    return out;
}

// Of tiles for tensor cores: those for one unit.
std::vector<Term> tiles_of_depth(const Statement& statement, const NaiveLoops& nest, const GpuMachine& machine, TileKind kind,
                                 const std::optional<MatrixUnit>& unit, std::size_t most) {
    constexpr std::int64_t max_threads = 512;
    const std::int64_t max_own = unit && unit->packed > 1 ? 128 : 64, depth = unit ? unit->depth : 0;
    const auto longest = main_sum(nest);
    const bool split = kind == TileKind::split || kind == TileKind::split_tensor;
    if (unit && (!longest || nest.loops[*longest].extent % depth != 0)) return {};
    if (kind != TileKind::plain && (!longest || statement.combine != Combine::sum || statement.reads.size() < 2 || nest.loops[*longest].extent < 4)) return {};
    if (statement.keeps_an_order()) return {};
    std::vector<const NaiveLoop*> outputs;
    for (const NaiveLoop& l : nest.loops)
        if (!l.reduction) outputs.push_back(&l);
    std::vector<std::pair<std::int64_t, std::int64_t>> sums{{1, longest ? nest.loops[*longest].extent : 1}};  // the threads that share a sum, and its chunk
    if (kind != TileKind::plain) {
        sums.clear();
        const std::int64_t e = nest.loops[*longest].extent;
        for (std::int64_t z : divisors(e, split ? 16 : 1))
            if (!split || z > 1)
                for (std::int64_t c : divisors(e / z, 64))
                    if (unit ? c % depth == 0 : c >= 2 || e / z == 1) sums.emplace_back(z, c);
    }
    std::vector<std::pair<double, BlockTile>> found;
    BlockTile tile{1, 1, std::vector<Share>(outputs.size()), depth};
    const auto add = [&] {
        if (unit && !lanes_of(nest, tile)) return;
        for (const auto& [z, c] : sums) {
            tile.sums = z, tile.chunk = c;
            const GpuShape shape =
                shape_of(statement, nest, tile, kind, unit ? unit->packed : 1);  // with tiles that are staged ahead, where the registers hold them
            if (shape.threads > static_cast<double>(machine.block_threads) || (shape.threads < 32 && shape.blocks > 1)) continue;
            GpuShape in_time = shape;
            in_time.ahead = 0;
            if (const double cost = std::min(gpu_cost(shape, machine), gpu_cost(in_time, machine)); std::isfinite(cost)) found.emplace_back(cost, tile);
        }
    };
    const auto choose = [&](const auto& self, std::size_t i, std::int64_t threads, std::int64_t own) -> void {
        if (i == outputs.size()) return add();
        const std::int64_t e = outputs[i]->extent;
        for (std::int64_t t : divisors(e, 128)) {
            if (threads * t > max_threads) break;
            for (std::int64_t o : divisors(e / t, 8)) {
                if (own * o > max_own) break;
                tile.shares[i] = {t, o};
                self(self, i + 1, threads * t, own * o);
            }
        }
    };
    choose(choose, 0, 1, 1);
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Term> out;
    for (std::size_t i = 0; i < found.size() && out.size() < most; ++i) out.push_back(to_term(found[i].second));
    return out;
}

}  // namespace

std::optional<std::int64_t> depth_of_tensor_tile(const Term& tile) {
    const auto read = tile.op().text() == "tensor-tile" ? read_block_tile(tile) : std::nullopt;
    return read ? std::optional(read->depth) : std::nullopt;
}

std::vector<Term> block_tiles(const Statement& statement, const NaiveLoops& nest, const GpuMachine& machine, TileKind kind, std::size_t most) {
    std::vector<Term> out;
    if (!is_tensor(kind)) return tiles_of_depth(statement, nest, machine, kind, {}, most);
    std::set<std::int64_t> depths;
    for (const MatrixUnit& u : machine.units)
        if (u.rows == warp_rows * own_rows && u.columns == warp_columns * own_columns && depths.insert(u.depth).second)
            for (Term& t : tiles_of_depth(statement, nest, machine, kind, u, most)) out.push_back(std::move(t));
    return out;
}

std::optional<std::vector<Term>> part_of_block(const NaiveLoops& nest, const Term& term, std::string_view part) {
    const auto tile = read_block_tile(term);
    const auto longest = main_sum(nest);
    if (!tile) return {};
    if (std::find(block_parts.begin(), block_parts.end(), part) == block_parts.end() &&
        std::find(tensor_parts.begin(), tensor_parts.end(), part) != tensor_parts.end())
        return part_for_tensor_cores(nest, *tile, part);
    const bool apart = part.starts_with("apart-");
    if (apart) part.remove_prefix(6);
    std::vector<Term> out;
    std::size_t output = 0;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
        const NaiveLoop& l = nest.loops[i];
        if (!l.reduction) {
            if (output >= tile->shares.size()) return {};
            const Share& s = tile->shares[output++];
            if (part == "blocks") add_digit(out, l.axis, l.extent, s.size(), l.extent);
            if ((part == "channel-threads" && l.weights_only) || (part == "threads" && !l.weights_only))
                add_digit(out, l.axis, l.extent, apart ? 1 : s.own, s.threads);
            if (part == "own") add_digit(out, l.axis, l.extent, apart ? s.threads : 1, s.own);
        } else if (i == longest) {
            const std::int64_t slice = l.extent / tile->sums;
            if (part == "shared-sums") add_digit(out, l.axis, l.extent, slice, tile->sums);
            if (part == "chunks") add_digit(out, l.axis, l.extent, tile->chunk, slice / tile->chunk);
            if (part == "chunk") add_digit(out, l.axis, l.extent, 1, tile->chunk);
        } else if ((part == "window" && is_window(l)) || (part == "long-window" && !is_window(l))) {
            out.push_back(l.axis);
        }
    }
    return std::find(block_parts.begin(), block_parts.end(), part) != block_parts.end() ? std::optional(out) : std::nullopt;
}

}  // namespace loopegg
