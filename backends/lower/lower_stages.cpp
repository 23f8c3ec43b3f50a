#include "backends/lower/lower_stages.hpp"

#include <numeric>

#include "backends/lower/lower_nest.hpp"
#include "backends/lower/scalar.hpp"
#include "base/error.hpp"
#include "nest/schedule/gpu_estimate.hpp"

namespace loopegg {

using tv::Expr;

std::vector<tv::Expr> NestStages::steps_here(const Tile& tile) const {
    std::vector<Expr> steps;
    for (const Tile::Step& s : tile.steps) steps.push_back(env_[static_cast<std::size_t>(s.var)]);
    return steps;
}

std::shared_ptr<Storage> NestStages::storage(const Tree& n, const Tile& tile, const std::string& name, bool local) {
    auto st = std::make_shared<Storage>();
    st->tile = &tile, st->stage = n->stage;
    std::vector<std::pair<int, int>> keys;  // depth, step
    Shape shape;
    for (std::size_t i = 0; i < tile.steps.size(); ++i) {
        int depth = -1;
        bool by_thread = gpu_ && n->buffer == 0;  // copies of inputs are whole for every thread
        std::optional<int> thread_var;
        each_body(n, [&](const TreeNode& b) {
            const OperandPlace* place = n->buffer == 0 ? (b.write.stage == n->stage ? &b.write : nullptr) : nullptr;
            for (std::size_t r = 0; !place && r < b.reads.size(); ++r)
                if (b.reads[r].stage == n->stage) place = &b.reads[r];
            if (!place) {
                by_thread = false;
                return;
            }
            std::vector<int> vars;
            place->index[i].collect(vars);
            for (int v : vars)
                if (!packed_vars_.contains(v)) depth = std::max(depth, depth_[static_cast<std::size_t>(v)]);
            const Index& at = place->index[i];
            const TreeNode* loop = at.kind() == Index::Kind::variable ? loop_of_[static_cast<std::size_t>(at.var())] : nullptr;
            by_thread = by_thread && loop && loop->loop == LoopKind::bind && is_thread(loop->place) && (!thread_var || *thread_var == at.var());
            if (loop) thread_var = at.var();
        });
        if (by_thread && tile.steps[i].extent > 1) continue;
        keys.emplace_back(depth, static_cast<int>(i));
    }
    if (local) std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    st->packed_step = packed_step(n).value_or(-1);
    std::int64_t bytes = 4;
    if (!local)
        for (const auto& [count, which] : sums_apart()) shape.push_back(count), st->slices.push_back(which);
    for (const auto& [depth, step] : keys) {
        st->order.push_back(step);
        shape.push_back(tile.steps[static_cast<std::size_t>(step)].extent / (step == st->packed_step ? in_word_ : 1));
        bytes *= shape.back();
    }
    if (shape.empty()) shape.push_back(1);
    if (gpu_ && st->packed_step >= 0) make_flat(*st, shape);
    const char* scope = !local ? "shared" : (gpu_ || bytes <= max_stack_bytes) ? "local" : "global";
    st->buffer = tv::buffer(name, shape, scope);
    return st;
}

// Packed tiles of warps are flat, in blocks of the numbers that one instruction takes.
void NestStages::make_flat(Storage& st, Shape& shape) const {
    any_node(t_.root, [&](const TreeNode& x) {
        if (x.kind == TreeNode::Kind::loop && x.loop == LoopKind::tensor) st.block = x.extent;
        return st.block > 0;
    });
    const std::int64_t numbers = st.tile->steps[static_cast<std::size_t>(st.packed_step)].extent;
    if (numbers % st.block != 0 || st.block % packed_at_once != 0 || !st.tile->predicates.empty())
        throw UserError("a tile of operands for a warp is no whole number of instructions");
    shape.resize(st.slices.size());
    shape.push_back(element_count(*st.tile) / in_word_);
}

// Of a stage that packs numbers into words: the step that counts the numbers in a word.
std::optional<int> NestStages::packed_step(const Tree& stage) const {
    std::optional<int> found;
    if (!packed() || stage->buffer == 0) return found;
    each_body(stage, [&](const TreeNode& b) {
        for (const OperandPlace& place : b.reads)
            for (std::size_t i = 0; place.stage == stage->stage && i < place.index.size(); ++i)
                for (int var : packed_vars_)
                    if (place.index[i].uses(var)) found = static_cast<int>(i);
    });
    return found;
}

tv::Obj NestStages::store_element(const Storage& st, const Tile& tile, const std::function<Expr()>& value) {
    if (st.packed_step < 0) return st.buffer.store(value(), physical(st, steps_here(tile)));
    Scope keep(env_);
    Expr& step = env_[static_cast<std::size_t>(tile.steps[static_cast<std::size_t>(st.packed_step)].var)];
    const Expr first = step * Expr(in_word_);
    step = first;
    std::vector<Expr> numbers{value()};
    const std::vector<Expr> at = physical(st, steps_here(tile));
    const bool padding = numbers[0].node.same_as(padding_.node);
    if (padding && !int8()) return st.buffer.store(padding_, at);  // two zeros are a word of zeros
    for (std::int64_t i = 1; i < in_word_; ++i) {
        step = first + Expr(i);
        numbers.push_back(padding ? padding_ : value());
    }
    if (!int8()) return st.buffer.store(packed_bf16(numbers[0], numbers[1]), at);
    return st.buffer.store(packed_bytes(numbers, int8_scale(Int8Tail::inverse), int8_scale(Int8Tail::zero)), at);
}

// Whether loops around a stage may be past the end of a sum that was split unevenly. Then nothing is loaded into the stage, and nothing may be written back.
bool NestStages::may_run_out(const TreeNode& stage, const TreeNode& body) const {
    std::vector<int> vars, outputs;
    for (const Predicate& p : body.predicates)
        if (interval(p.expression, extents_).high >= p.bound) p.expression.collect(vars);
    for (const Index& i : written(body)) i.collect(outputs);
    return std::any_of(vars.begin(), vars.end(), [&](int v) {
        const bool walked_inside = any_node(stage.children[0], [&](const TreeNode& x) { return x.kind == TreeNode::Kind::loop && x.var == v; });
        return !walked_inside && std::find(outputs.begin(), outputs.end(), v) == outputs.end();
    });
}

std::optional<NestStages::Rows> NestStages::across_rows(const TreeNode& n) const {
    const Buffer& out = s_.buffers[0];
    if (gpu_ || !out.blocking.empty()) return {};
    std::vector<std::int64_t> strides(n.tile.steps.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t d = out.shape.size(); d-- > 0; stride *= out.shape[d])
        for (const auto& [atom, k] : linear(n.tile.index[d]).terms)
            for (std::size_t i = 0; i < strides.size(); ++i)
                if (atom.uses(n.tile.steps[i].var)) {
                    if (atom.kind() != Index::Kind::variable) return {};
                    strides[i] += k * stride;
                }
    bool across = false, ends = false;
    each_body(n.children[0], [&](const TreeNode& b) {
        if (b.write.stage != n.stage) return;
        ends = ends || may_run_out(n, b);
        for (std::size_t i = 0; i < strides.size(); ++i) {
            const Index& at = b.write.index[i];
            const TreeNode* loop = at.kind() == Index::Kind::variable ? loop_of_[static_cast<std::size_t>(at.var())] : nullptr;
            across = across || (loop && is_vector(*loop) && loop->extent > 1 && strides[i] > 1);
        }
    });
    if (!across || ends) return {};
    std::vector<std::size_t> order(strides.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
    Rows rows{n.tile};
    for (std::size_t i = 0; i < order.size(); ++i) rows.tile.steps[i] = n.tile.steps[order[i]];
    std::int64_t piece = 1;
    for (std::size_t i = order.size(); i-- > 0 && strides[order[i]] == piece && piece * rows.tile.steps[i].extent <= max_lanes;
         piece *= rows.tile.steps[i].extent)
        ++rows.in_one_piece;
    const bool whole_rows = std::any_of(order.begin(), order.end(), [&](std::size_t i) { return strides[i] == 1 && n.tile.steps[i].extent > 1; });
    return whole_rows ? std::optional(rows) : std::nullopt;
}

bool NestStages::on_stack(const tv::Buffer& b) const {
    std::int64_t bytes = 4;
    for (std::int64_t d : b.shape) bytes *= d;
    return !gpu_ && bytes <= max_stack_bytes;
}

tv::Obj NestStages::copy_tile(const Tree& n, const Storage& st, const std::function<Obj()>& leaf) {
    if (st.order.size() == n->tile.steps.size()) {
        Tile rows = n->tile;
        std::size_t last = rows.steps.size();
        while (last > 0 && rows.steps[last - 1].extent == 1) --last;
        if (st.packed_step < 0 || last == 0 || !rows.predicates.empty()) return over_tile(n->tile, spread_below(n->children[0]), leaf);
        const Tile::Step along = rows.steps[--last];  // numbers are rounded and packed many at a time
        rows.steps[last].extent = 1;
        return over_tile(rows, spread_below(n->children[0]), [&] { return over_vectors(along, 0, along.extent, leaf); });
    }
    throw UserError("a stage of an input outside the loops bound to threads must be (shared ...)");
}

// Copies a tile whose last step walks along one dimension, from before its beginning to past its end: each row is padding, then a plain copy, then padding.
// With a test for each element instead, LLVM needs more time than for all other loops of a convolution.
tv::Obj NestStages::copy_rows(const Tree& n, const Storage& st, const std::function<Obj()>& leaf) {
    const Tile& tile = n->tile;
    const Shape& shape = s_.buffers[static_cast<std::size_t>(n->buffer)].shape;
    std::size_t last = tile.steps.size();
    while (last > 0 && tile.steps[last - 1].extent == 1) --last;
    const bool plain = gpu_ || last < 2 || st.order.size() != tile.steps.size() || !tile.predicates.empty() || !input_stages_[n->buffer].empty();
    if (plain) return copy_tile(n, st, leaf);
    const Tile::Step along = tile.steps[--last];
    std::size_t row = shape.size(), users = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (tile.index[d].uses(along.var)) row = d, ++users;
    if (users != 1) return copy_tile(n, st, leaf);
    const LinearForm form = linear(tile.index[row]);
    const bool alone = form.terms.size() == 1 && form.terms[0].second == 1 && form.terms[0].first.kind() == Index::Kind::variable;
    const std::int64_t begin = std::max<std::int64_t>(0, -form.offset), end = std::min(along.extent, shape[row] - form.offset);
    if (!alone || begin >= end || (begin == 0 && end == along.extent)) return copy_tile(n, st, leaf);
    Tile rows = tile;
    rows.steps[last].extent = 1;
    auto stretch = [&](std::int64_t from, std::int64_t to, const std::function<Expr()>& value) {
        if (st.packed_step >= 0) return over_vectors(along, from, to, [&] { return store_element(st, tile, value); });
        const tv::Variable v = tv::variable("s" + std::to_string(along.var));
        Expr& at = env_[static_cast<std::size_t>(along.var)];
        at = to - from == 1 ? Expr(from) : v.expr() + Expr(from);
        const Obj store = store_element(st, tile, value);
        return to - from == 1 ? store : tv::loop(v, to - from, tv::LoopKind::serial, store);
    };
    return over_tile(rows, spread_below(n->children[0]), [&] {
        auto beyond = [&] { return padding_; };
        auto value = [&] { return read_buffer(n->buffer, tile.index, false); };
        std::vector<Obj> all;
        if (begin > 0) all.push_back(stretch(0, begin, beyond));
        const Expr row_inside = inside(tile.index, shape, row);
        all.push_back(row_inside.node.defined() ? tv::either(row_inside, stretch(begin, end, value), stretch(begin, end, beyond)) : stretch(begin, end, value));
        if (end < along.extent) all.push_back(stretch(end, along.extent, beyond));
        return tv::sequence(all);
    });
}

}  // namespace loopegg
