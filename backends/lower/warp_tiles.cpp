// Packed tiles of operands in the memory that the threads of a block share: how they are filled, and how weights are stored for that.
#include "backends/lower/lower_nest.hpp"
#include "backends/lower/lower_stages.hpp"
#include "backends/lower/scalar.hpp"
#include "base/error.hpp"
#include "nest/schedule/gpu_estimate.hpp"

namespace loopegg {

using tv::Expr;
using tv::Obj;

namespace {

constexpr std::int64_t words_at_once = 4;  // 16 bytes, the most that an instruction moves

}  // namespace

// What threads copy: neighbouring words of weights, or `packed_at_once` numbers of an operand. Neighbouring threads take neighbours of the tile's last step,
// which are neighbours in memory.
Tile NestStages::items_of(const TreeNode& stage, const Storage& st) const {
    Tile items;
    const auto packed = static_cast<std::size_t>(st.packed_step);
    items.steps.push_back({stage.tile.steps[packed].var, stage.tile.steps[packed].extent / packed_at_once});
    for (std::size_t i = 0; i < stage.tile.steps.size(); ++i)
        if (i != packed) items.steps.push_back(stage.tile.steps[i]);
    return items;
}

std::int64_t NestStages::kept_words(const TreeNode& stage) const {
    std::int64_t elements = stage.tile.elements(), threads = shares(stage.tile, 1).threads;
    const std::int64_t rounds = (elements / packed_at_once + threads - 1) / threads;
    return rounds * (is_packed_weight(stage) ? words_at_once : packed_at_once);
}

Obj NestStages::fetch_words(const TreeNode& stage, const Storage& st, const tv::Buffer& kept) {
    const Tile items = items_of(stage, st);
    if (is_packed_weight(stage)) {
        Expr before = 0;  // tiles of words
        std::vector<int> steps;
        for (const Tile::Step& s : stage.tile.steps) steps.push_back(s.var);
        for (const WeightReader& r : readers_.at(stage.buffer)) {
            if (std::none_of(r.atoms.begin(), r.atoms.end(), [&](const WeightReader::Atom& a) { return a.index.uses(items.steps[0].var); })) continue;
            for (const WeightReader::Atom& a : r.atoms)
                if (std::none_of(steps.begin(), steps.end(), [&](int v) { return a.index.uses(v); })) before = before * Expr(a.extent) + expr(a.index);
            before = before * Expr(st.buffer.shape.back()) + Expr(r.start / in_word_);
        }
        Tile flat;
        flat.steps.push_back({items.steps[0].var, st.buffer.shape.back()});
        return cooperative(
            flat, words_at_once,
            [&](const Expr& round, const Expr& lane) {
                const Expr from = before + env_[static_cast<std::size_t>(flat.steps[0].var)];
                return kept.store(buffers_[static_cast<std::size_t>(stage.buffer)].load({from}), {round, lane});
            },
            true);
    }
    const Access* access = nullptr;
    for (const Access& a : s_.reads)
        if (a.buffer == stage.buffer) access = &a;
    require(access != nullptr, "a staged operand is read");
    return cooperative(
        items, 1,
        [&](const Expr& round, const Expr&) {
            Scope keep(env_);
            Expr& step = env_[static_cast<std::size_t>(items.steps[0].var)];
            const Expr first = step * Expr(packed_at_once);
            const auto all = [&](const std::function<Expr()>& value) {
                std::vector<Obj> stores;
                for (std::int64_t i = 0; i < packed_at_once; ++i) {
                    step = first + Expr(i);
                    stores.push_back(kept.store(value(), {round, i}));
                }
                return tv::sequence(stores);
            };
            const Obj read = all([&] { return read_buffer(stage.buffer, stage.tile.index, false); });
            step = first;
            const Expr within = access->padded ? inside(stage.tile.index, s_.buffers[static_cast<std::size_t>(stage.buffer)].shape) : Expr(Obj{nullptr});
            return within.node.defined() ? tv::either(within, read, all([&] { return outside(); })) : read;
        },
        true);
}

Obj NestStages::store_words(const TreeNode& stage, const Storage& st, const tv::Buffer& kept) {
    const Tile items = items_of(stage, st);
    const auto to = [&](const Expr& word) {
        std::vector<Expr> at = st.slices;
        at.push_back(word);
        return at;
    };
    if (is_packed_weight(stage)) {
        Tile flat;
        flat.steps.push_back({items.steps[0].var, st.buffer.shape.back()});
        return cooperative(
            flat, words_at_once,
            [&](const Expr& round, const Expr& lane) {
                return st.buffer.store(kept.load({round, lane}), to(env_[static_cast<std::size_t>(flat.steps[0].var)]));
            },
            true);
    }
    return cooperative(
        items, 1,
        [&](const Expr& round, const Expr&) {
            Scope keep(env_);
            Expr& step = env_[static_cast<std::size_t>(items.steps[0].var)];
            step = step * Expr(packed_at_once);
            const Expr first = physical(st, steps_here(stage.tile)).back();
            const tv::Buffer words = tv::buffer("words" + std::to_string(stage.stage), {packed_at_once / in_word_}, "local");
            std::vector<Obj> all{tv::allocate(words, false)};  // so that all words are stored at once
            for (std::int64_t w = 0; w < words.shape[0]; ++w)
                all.push_back(words.store(packed_by_warps(packed_kind_, kept.load({round, 2 * w}), kept.load({round, 2 * w + 1})), {w}));
            const tv::Variable lane = tv::variable("lane");
            all.push_back(tv::loop(lane, words.shape[0], tv::LoopKind::vectorized, st.buffer.store(words.load({lane.expr()}), to(first + lane.expr()))));
            return tv::sequence(all);
        },
        true);
}

void NestStages::order_as_tiles(int b, KernelBuffer& parameter) {
    if (!gpu_ || !packed() || !readers_.contains(b)) return;
    std::vector<std::pair<int, std::vector<int>>> tiles;  // the packed step's variable, and those of all steps
    any_node(t_.root, [&](const TreeNode& n) {
        if (n.kind != TreeNode::Kind::stage || n.buffer != b) return false;
        const auto step = packed_step(std::make_shared<TreeNode>(n));
        if (!step) throw UserError("a tile of weights for a warp has no steps of a sum");
        std::vector<int> vars;
        for (const Tile::Step& s : n.tile.steps) vars.push_back(s.var);
        tiles.emplace_back(vars[static_cast<std::size_t>(*step)], std::move(vars));
        return false;
    });
    std::int64_t block = 0;
    any_node(t_.root, [&](const TreeNode& x) {
        if (x.kind == TreeNode::Kind::loop && x.loop == LoopKind::tensor) block = x.extent;
        return block > 0;
    });
    for (WeightReader& r : readers_[b])
        for (const auto& [packed, vars] : tiles) {
            const auto of_tile = [&, &vars = vars](const WeightReader::Atom& a) {
                return std::any_of(vars.begin(), vars.end(), [&](int v) { return a.index.uses(v); });
            };
            const auto at = std::find_if(r.atoms.begin(), r.atoms.end(), [&, p = packed](const auto& a) { return a.index == Index::variable(p); });
            if (at == r.atoms.end()) continue;
            const auto from = at - r.atoms.begin(), first = std::find_if(r.atoms.begin(), r.atoms.end(), of_tile) - r.atoms.begin();
            const WeightReader::Atom whole = *at;
            const auto moved = [&](auto& list, const auto& outer, const auto& inner) {
                list.erase(list.begin() + from);
                list.insert(list.begin() + first, outer);
                list.push_back(inner);
            };
            moved(r.atoms, WeightReader::Atom{whole.index / block, whole.extent / block}, WeightReader::Atom{whole.index % block, block});
            for (std::vector<std::int64_t>& row : r.coefficients) {
                const std::int64_t k = row[static_cast<std::size_t>(from)];
                moved(row, k * block, k);
            }
            break;
        }
    parameter.readers = readers_[b];
}

}  // namespace loopegg
