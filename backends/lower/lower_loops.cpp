#include "backends/lower/lower_loops.hpp"

#include <algorithm>
#include <functional>

#include "backends/lower/unit_loops.hpp"
#include "backends/runtime/loopegg_runtime.h"
#include "base/error.hpp"

namespace loopegg {

using tv::Expr;
using tv::Obj;

namespace {

// A loop with more copies that was to be unrolled becomes an ordinary loop, because code grows with the product of the extents.
constexpr std::int64_t max_unrolled = 2048;

// The axis 0..2 of "blockIdx.x" and so on.
int place_axis(const std::string& place) { return place.empty() ? 0 : std::clamp(place.back() - 'x', 0, 2); }
bool is_block(const std::string& place) { return place.starts_with("blockIdx"); }

// TVM makes vectors of plain statements only. A loop with storage, threads or vectors inside stays a loop.
bool plain_below(const TreeNode& n) {
    for (const Tree& c : n.children) {
        if (c->kind == TreeNode::Kind::stage ||
            (c->kind == TreeNode::Kind::loop && (c->partial || c->loop == LoopKind::vector || c->loop == LoopKind::parallel)))
            return false;
        if (!plain_below(*c)) return false;
    }
    return true;
}

}  // namespace

bool is_thread(const std::string& place) { return place.starts_with("threadIdx"); }

NestLoops::NestLoops(const Statement& statement, const LoopTree& tree, bool gpu)
    : NestOperands(statement, tree, gpu), loop_of_(static_cast<std::size_t>(tree.variables), nullptr), depth_(static_cast<std::size_t>(tree.variables), 0) {
    scan(tree.root);
}

void NestLoops::scan(const Tree& n, int depth) {
    if (n->kind == TreeNode::Kind::loop) {
        if (const auto u = packed() ? unit_loops(s_, *n) : std::nullopt) {
            for (const TreeNode* loop : {u->rows, u->depth, u->columns, u->packed}) unit_vars_.insert(loop->var);
            packed_vars_.insert(u->packed->var), column_vars_.insert(u->columns->var);
        }
        if (gpu_ && packed() && n->loop == LoopKind::tensor) packed_vars_.insert(n->var);
        loop_of_[static_cast<std::size_t>(n->var)] = n.get();
        depth_[static_cast<std::size_t>(n->var)] = depth++;
        if (n->loop == LoopKind::bind && gpu_) {
            auto& e = places_[n->place];
            e.extent = std::max(e.extent, n->extent);
            e.sums = e.sums || n->partial;
        }
    }
    for (const Tree& c : n->children) scan(c, depth);
}

Expr NestLoops::place_variable(PlaceUse& p, const std::string& name) {
    if (!p.var.node.defined()) p.var = tv::variable(name == "vthread" ? "vthread" : name);
    return p.var.expr();
}

// On a GPU every thread runs the whole program. So work that is not inside a loop bound to a place is for the first thread (or block) of that place alone.
Expr NestLoops::mine() {
    Expr c = guard_;
    for (auto& [name, p] : places_)
        if (p.extent > 1 && p.depth == 0 && name != "vthread") c = both(c, less(place_variable(p, name), 1));
    return c;
}

bool NestLoops::inside_threads() const {
    return std::any_of(places_.begin(), places_.end(), [](const auto& p) { return is_thread(p.first) && p.second.depth > 0 && !p.second.sums; });
}

std::vector<std::pair<std::int64_t, Expr>> NestLoops::sums_apart() {
    std::vector<std::pair<std::int64_t, Expr>> all;
    for (auto& [name, p] : places_)
        if (is_thread(name) && p.depth > 0 && p.sums && p.extent > 1) all.emplace_back(p.extent, place_variable(p, name));
    return all;
}

// One loop around what `inner` makes. The variable is fresh each time, so that a tree may be walked more than once.
Obj NestLoops::around(const TreeNode& n, const std::function<Obj()>& inner, bool may_vectorize) {
    Expr& slot = env_[static_cast<std::size_t>(n.var)];
    const Expr before = slot;
    const Expr guard_before = guard_;
    const std::int64_t unrolled_before = unrolled_;
    const bool parallel_before = in_parallel_;
    if (n.extent == 1) {
        slot = 0;
        Obj body = inner();
        slot = before;
        return body;
    }
    if (gpu_ && n.loop == LoopKind::bind && n.place != "vthread") {
        PlaceUse& p = places_[n.place];
        if (p.depth) throw UserError("two loops, one inside the other, are bound to " + n.place);
        ++p.depth;
        slot = place_variable(p, n.place);
        if (n.extent < p.extent) guard_ = both(guard_, less(slot, n.extent));
        Obj body = inner();
        --p.depth;
        slot = before, guard_ = guard_before;
        return body;
    }
    tv::LoopKind kind = tv::LoopKind::serial;
    if (n.loop == LoopKind::parallel && !gpu_ && !in_parallel_) kind = tv::LoopKind::parallel, in_parallel_ = true, turns_.push_back(n.extent);
    const bool wants_unroll = (n.loop == LoopKind::unroll && !unit_vars_.contains(n.var)) || (gpu_ && (n.loop == LoopKind::vector || n.loop == LoopKind::bind));
    if (wants_unroll && unrolled_ * n.extent <= max_unrolled) kind = tv::LoopKind::unrolled, unrolled_ *= n.extent;
    if (is_vector(n) && !gpu_ && may_vectorize && n.extent <= max_lanes && plain_below(n)) kind = tv::LoopKind::vectorized;
    const tv::Variable v = tv::variable("v" + std::to_string(n.var));
    slot = v.expr();
    Obj body = inner();
    slot = before, unrolled_ = unrolled_before, in_parallel_ = parallel_before;
    return tv::loop(v, n.extent, kind, body);
}

// Makes loops over the steps of a tile. `leaf` makes the innermost body. The first loop may run on several cores.
Obj NestLoops::over_tile(const Tile& tile, bool parallel, const std::function<Obj()>& leaf) {
    Scope keep(env_);
    std::vector<tv::Variable> vars;
    for (const Tile::Step& step : tile.steps) {
        vars.push_back(tv::variable("s" + std::to_string(step.var)));
        env_[static_cast<std::size_t>(step.var)] = step.extent == 1 ? Expr(0) : vars.back().expr();
    }
    Obj body = tv::guarded(holds(tile.predicates), leaf());
    bool outermost_done = !parallel;
    int outermost = -1;
    for (std::size_t i = 0; i < tile.steps.size() && !outermost_done; ++i)
        if (tile.steps[i].extent > 1) outermost = static_cast<int>(i), outermost_done = true;
    if (outermost >= 0) turns_.push_back(tile.steps[static_cast<std::size_t>(outermost)].extent);
    for (std::size_t i = tile.steps.size(); i-- > 0;)
        if (tile.steps[i].extent > 1)
            body = tv::loop(vars[i], tile.steps[i].extent, static_cast<int>(i) == outermost ? tv::LoopKind::parallel : tv::LoopKind::serial, body);
    return body;
}

Obj NestLoops::over_vectors(const Tile::Step& step, std::int64_t from, std::int64_t to, const std::function<Obj()>& leaf) {
    constexpr std::int64_t longest = 16;
    Scope keep(env_);
    std::vector<Obj> all;
    for (std::int64_t lanes = longest; from < to; lanes /= 2) {
        const std::int64_t turns = (to - from) / lanes;
        if (turns == 0) continue;
        const tv::Variable turn = tv::variable("s" + std::to_string(step.var)), lane = tv::variable("lane");
        const Expr first = turns == 1 ? Expr(from) : turn.expr() * Expr(lanes) + Expr(from);
        env_[static_cast<std::size_t>(step.var)] = lanes == 1 ? first : first + lane.expr();
        const Obj body = lanes == 1 ? leaf() : tv::loop(lane, lanes, tv::LoopKind::vectorized, leaf());
        all.push_back(turns == 1 ? body : tv::loop(turn, turns, tv::LoopKind::serial, body));
        from += turns * lanes;
    }
    return tv::sequence(all);
}

Obj NestLoops::over_rows(const Tile& tile, std::size_t in_one_piece, const std::function<Obj()>& leaf) {
    std::int64_t lanes = 1;
    for (std::size_t i = tile.steps.size() - in_one_piece; i < tile.steps.size(); ++i) lanes *= tile.steps[i].extent;
    if (lanes < 4 || !tile.predicates.empty()) return over_tile(tile, false, leaf);
    const tv::Variable lane = tv::variable("lane");
    Tile outer = tile;
    outer.steps.resize(tile.steps.size() - in_one_piece);
    return over_tile(outer, false, [&] {
        Scope keep(env_);
        std::int64_t below = 1;
        for (std::size_t i = tile.steps.size(); i-- > outer.steps.size(); below *= tile.steps[i].extent)
            env_[static_cast<std::size_t>(tile.steps[i].var)] =
                below * tile.steps[i].extent == lanes ? floor_div(lane.expr(), below) : floor_mod(floor_div(lane.expr(), below), tile.steps[i].extent);
        return tv::loop(lane, lanes, tv::LoopKind::vectorized, leaf());
    });
}

std::int64_t NestLoops::turns() const {
    const bool all_alike = std::adjacent_find(turns_.begin(), turns_.end(), std::not_equal_to<>()) == turns_.end();
    if (!all_alike && (turns_.size() > loopegg_max_turn_loops || std::find(turns_.begin(), turns_.end(), 1) != turns_.end()))
        return 0;  // TVM removes a loop of one turn, and then the others would be counted wrong
    std::int64_t packed = 0;
    for (std::size_t i = all_alike && !turns_.empty() ? turns_.size() - 1 : 0, loop = 0; i < turns_.size(); ++i, ++loop)
        packed |= std::min<std::int64_t>(turns_[i], loopegg_max_turns) << (loop * loopegg_turn_bits);
    return packed;
}

bool NestLoops::spread_below(const Tree& n) const {
    return !gpu_ && !in_parallel_ && any_node(n, [](const TreeNode& x) { return x.kind == TreeNode::Kind::loop && x.loop == LoopKind::parallel; });
}

// Whether the loops of a tree that output elements depend on visit each element of the output once. They do not if a loop walks outputs and
// something else at once, or if two parts visit the same element. Then tiles are walked instead.
bool NestLoops::projectable(const Tree& n, std::int64_t elements) const { return points(n) == elements; }

std::int64_t NestLoops::points(const Tree& n) const {
    switch (n->kind) {
        case TreeNode::Kind::loop: return (writes_through(n->children[0], n->var) ? n->extent : 1) * points(n->children[0]);
        case TreeNode::Kind::cat: return points(n->children[0]) + points(n->children[1]);
        case TreeNode::Kind::body: return 1;
        default: return points(n->children[0]);
    }
}

Obj NestLoops::project(const Tree& n, const std::function<Obj(const TreeNode&)>& leaf) {
    switch (n->kind) {
        case TreeNode::Kind::loop: {
            if (writes_through(n->children[0], n->var))
                return around(
                    *n, [&] { return project(n->children[0], leaf); }, true);
            Scope keep(env_);
            env_[static_cast<std::size_t>(n->var)] = 0;
            return project(n->children[0], leaf);
        }
        case TreeNode::Kind::cat: return tv::sequence({project(n->children[0], leaf), project(n->children[1], leaf)});
        case TreeNode::Kind::body: return tv::guarded(both(holds(n->predicates), Expr(Obj{nullptr})), leaf(*n));
        default: return project(n->children[0], leaf);
    }
}

bool NestLoops::bound_below(const Tree& n) const {
    return gpu_ && any_node(n, [](const TreeNode& x) { return x.kind == TreeNode::Kind::loop && x.loop == LoopKind::bind && x.extent > 1; });
}

Obj NestLoops::each_element(const Tree& below, const std::vector<Tile>& tiles, const ElementLeaf& leaf) {
    std::int64_t elements = 0;
    for (const Tile& t : tiles) elements += element_count(t);
    if (projectable(below, elements)) return project(below, [&](const TreeNode& b) { return leaf(written(b), &b); });
    if (bound_below(below))
        throw UserError("threads are bound inside a part of the schedule that begins and ends outputs in an order that threads cannot share");
    std::vector<Obj> all;
    for (const Tile& t : tiles) all.push_back(over_tile(t, spread_below(below), [&] { return leaf(t.index, nullptr); }));
    return tv::sequence(all);
}

std::optional<WholeTile> NestLoops::whole_tile(const Tree& n) const {
    if (gpu_ || s_.coefficients.size() != 2 || s_.combine != Combine::sum || s_.reads.size() != 1) return {};
    WholeTile whole;
    std::vector<int> written_out;
    const TreeNode* at = n.get();
    for (; at->kind != TreeNode::Kind::body; at = at->children[0].get()) {
        if (at->kind == TreeNode::Kind::complete)
            whole.finishes = true;
        else if (at->kind != TreeNode::Kind::loop || at->partial || whole.lanes)
            return {};
        else if (at->loop == LoopKind::unroll)
            written_out.push_back(at->var);
        else if (at->loop == LoopKind::vector)
            whole.lanes = at;
        else
            return {};
    }
    whole.body = at;
    std::vector<int> walked;
    for (const Coefficient& c : s_.coefficients)
        for (const int axis : {c.row, c.column}) {
            const Index& i = at->iterators[static_cast<std::size_t>(axis)];
            if (s_.axes[static_cast<std::size_t>(axis)].extent == 1) continue;  // has no loop
            if (i.kind() != Index::Kind::variable) return {};
            walked.push_back(i.var());
        }
    std::sort(walked.begin(), walked.end()), std::sort(written_out.begin(), written_out.end());
    if (walked != written_out || (whole.lanes && whole.lanes->extent > max_lanes)) return {};
    return whole;
}

NestLoops::Shares NestLoops::shares(const Tile& tile, std::int64_t lanes) const {
    Shares s{1, lanes, 1};
    for (const auto& [name, p] : places_)
        if (is_thread(name) && p.depth == 0) s.threads *= p.extent;
    std::size_t last = tile.steps.size();
    while (last > 0 && tile.steps[last - 1].extent == 1) --last;
    if (last == 0 || tile.steps[last - 1].extent % lanes != 0 || !tile.predicates.empty()) s.lanes = 1;
    s.rounds = (element_count(tile) / s.lanes + s.threads - 1) / s.threads;
    return s;
}

// All threads that no loop around here is bound to go through a tile together, and each takes some of the elements. A thread takes `lanes` elements at once
// where the last step is a multiple of `lanes`.
Obj NestLoops::cooperative(const Tile& tile, std::int64_t lanes, const CopyLeaf& leaf, bool written_out) {
    const Shares share = shares(tile, lanes);
    const std::int64_t threads = share.threads, rounds = share.rounds;
    lanes = share.lanes;
    Expr me = 0;
    std::vector<PlaceUse*> taken;
    for (auto place = places_.rbegin(); place != places_.rend(); ++place)  // x last: neighbours of a warp copy neighbours
        if (auto& [name, p] = *place; is_thread(name) && p.depth == 0) me = me * Expr(p.extent) + place_variable(p, name), taken.push_back(&p);
    std::size_t last = tile.steps.size();
    while (last > 0 && tile.steps[last - 1].extent == 1) --last;
    const std::int64_t total = element_count(tile) / lanes;
    const tv::Variable r = tv::variable("copy"), lane = tv::variable("lane");
    const Expr flat = (rounds == 1 ? Expr(0) : r.expr() * Expr(threads)) + me;
    Scope keep(env_);
    std::int64_t stride = 1;
    for (std::size_t i = tile.steps.size(); i-- > 0;) {
        const bool vector = lanes > 1 && i + 1 == last;
        const std::int64_t extent = vector ? tile.steps[i].extent / lanes : tile.steps[i].extent;
        Expr e = floor_div(flat, stride);
        stride *= extent;
        if (stride < total) e = floor_mod(e, extent);
        if (extent == 1) e = 0;
        env_[static_cast<std::size_t>(tile.steps[i].var)] = vector ? e * Expr(lanes) + lane.expr() : e;
    }
    Expr in_range{Obj{nullptr}};
    if (rounds * threads > total) in_range = less(flat, total);
    for (PlaceUse* p : taken) ++p->depth;
    Obj body = leaf(rounds == 1 ? Expr(0) : r.expr(), lanes == 1 ? Expr(0) : lane.expr());
    for (PlaceUse* p : taken) --p->depth;
    if (lanes > 1) body = tv::loop(lane, lanes, tv::LoopKind::vectorized, body);
    body = tv::guarded(both(in_range, holds(tile.predicates)), body);
    return rounds == 1 ? body : tv::loop(r, rounds, written_out ? tv::LoopKind::unrolled : tv::LoopKind::serial, body);
}

// On a GPU, puts the whole program inside the launch.
Obj NestLoops::launched(Obj body, Launch& launch) {
    bool any = false;
    for (auto& [name, p] : places_) {
        if (name == "vthread") continue;
        (is_block(name) ? launch.grid : launch.block)[static_cast<std::size_t>(place_axis(name))] = p.extent;
    }
    if (launch.threads() > 1024) throw UserError("a block of " + std::to_string(launch.threads()) + " threads; a GPU takes 1,024");
    for (auto& [name, p] : places_)
        if (name != "vthread") {
            place_variable(p, name);
            body = tv::loop(p.var, p.extent, tv::LoopKind::bound, body, name);
            any = any || is_block(name);
        }
    if (!any) body = tv::loop(tv::variable("block"), 1, tv::LoopKind::bound, body, "blockIdx.x");
    return body;
}

}  // namespace loopegg
