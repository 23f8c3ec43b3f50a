#include "backends/lower_nest.hpp"

#include <numeric>
#include <optional>

#include "backends/lower_loops.hpp"
#include "backends/restored_copies.hpp"
#include "backends/scalar.hpp"
#include "base/error.hpp"
#include "nest/domain.hpp"

namespace loopegg {
namespace {

// The nodes of a loop tree, one by one.
class Lowering : NestLoops {
public:
    Lowering(const Statement& statement, const LoopTree& tree, const Domain& domain, const Target& target) : NestLoops(statement, tree, target.gpu()), domain_(domain) {
        if (restored()) copies_ = restored_copies(domain, graph_axes(statement));
    }

    LoweredNest run(const std::string& name) {
        LoweredNest result;
        for (std::size_t b = 0; b < s_.buffers.size(); ++b) result.parameters.push_back(parameter(static_cast<int>(b)));
        Obj body = emit(t_.root);
        if (gpu_) body = launched(body, result.launch);
        result.function = tv::primitive(name, buffers_, body);
        return result;
    }

private:
    // The last write of an element: the statement's finish, and with it the missing elements that it stands for. `computed`: the element
    // is known to be one that instances compute.
    Obj finish_element(const std::vector<Index>& logical, bool computed, const Expr& acc, const Spot& to) {
        if (!restored()) return tv::guarded(here(to), to.store(finished(acc, logical)));
        const std::vector<Index> iterators = iterators_at(logical);
        std::vector<Obj> all, own;
        for (const RestoredCopy& c : copies_.copies) {
            Expr when{Obj{nullptr}};
            if (!(c.always && computed))
                for (const DigitRange& r : c.when) {
                    const Expr d = floor_mod(floor_div(expr(iterators[static_cast<std::size_t>(s_.axis(r.digit.axis))]), r.digit.stride), r.digit.radix);
                    if (r.lo > 0) when = both(when, at_least(d, r.lo));
                    if (r.hi < r.digit.radix) when = both(when, less(d, r.hi));
                }
            Scope keep(env_);
            const tv::Variable k = tv::variable("copy");
            env_[static_cast<std::size_t>(t_.variables)] = c.count > 1 ? k.expr() : Expr(0);
            const Index copy = Index::variable(t_.variables);
            std::vector<Index> at = logical;
            for (std::size_t a = 0; a < copies_.axes.size(); ++a)
                for (std::size_t d = 0; d < at.size(); ++d) {
                    const std::int64_t scale = s_.write.index[d].coefficients[static_cast<std::size_t>(s_.axis(copies_.axes[a].name))];
                    if (scale != 0) at[d] = at[d] + Index(c.offset[a] * scale) + copy * (c.step[a] * scale);
                }
            const Expr value = c.itself() || domain_.restore == Restore::repeat ? acc : tv::float_value(0);
            Obj store = tv::guarded(both(when, mine()), buffers_[0].store(finished(value, at), stored(0, at)));
            if (c.count > 1) store = tv::loop(k, c.count, tv::LoopKind::serial, store);
            (c.itself() ? own : all).push_back(store);
        }
        all.insert(all.end(), own.begin(), own.end());   // last: acc may be the element itself
        return tv::sequence(all);
    }
    bool restored() const { return domain_.restore != Restore::none; }
    Expr here(const Spot& to) { return to_global(to) ? mine() : Expr(Obj{nullptr}); }   // what a thread must be to write there

    Obj emit(const Tree& n) {
        switch (n->kind) {
            case TreeNode::Kind::loop: return n->partial ? emit_partial(n) : around(*n, [&] { return turn(*n); }, writes_through(n->children[0], n->var));
            case TreeNode::Kind::cat: return tv::sequence({emit(n->children[0]), emit(n->children[1])});
            case TreeNode::Kind::complete: return emit_complete(n);
            case TreeNode::Kind::stage: return n->buffer == 0 ? emit_output_stage(n) : emit_input_stage(n);
            case TreeNode::Kind::body: return emit_body(*n);
        }
        return {};
    }

    // The innermost loop that stays a loop asks ahead for weights: they are read once, and a core that waits for memory multiplies nothing.
    Obj turn(const TreeNode& n) {
        const Tree& below = n.children[0];
        Obj body = emit(below);
        if (gpu_ || n.loop != LoopKind::serial || n.extent == 1) return body;
        if (any_node(below, [](const TreeNode& x) { return x.kind == TreeNode::Kind::stage || (x.kind == TreeNode::Kind::loop && x.loop == LoopKind::serial && x.extent > 1); })) return body;
        std::vector<Obj> all = prefetched(below);
        all.push_back(body);
        return tv::sequence(all);
    }

    Obj emit_body(const TreeNode& b) {
        const Expr value = scalar(s_.value, [&](const std::string& name) -> Expr {
            for (std::size_t r = 0; r < s_.reads.size(); ++r)
                if (buffer_name(s_.reads[r].buffer) == name) return read(b, r);
            throw InternalFault("a statement's value names an unknown buffer");
        });
        const Spot to = output(b);
        if (s_.combine != Combine::assign) return tv::guarded(both(holds(b.predicates), here(to)), to.store(combined(to.load(), value)));
        if (restored() && !to_global(to)) return tv::guarded(holds(b.predicates), to.store(value));   // finished where it leaves the storage
        return tv::guarded(holds(b.predicates), finish_element(written(b), true, value, to));
    }

    Obj emit_complete(const Tree& n) {
        const Tree& below = n->children[0];
        auto begin = [&](const std::vector<Index>& logical, const TreeNode* b) {
            const Spot to = b && outputs_.empty() ? output(logical) : b ? output(*b) : output(logical);
            return tv::guarded(here(to), to.store(identity()));
        };
        auto end = [&](const std::vector<Index>& logical, const TreeNode* b) {
            const Spot to = output(logical);
            return finish_element(logical, b || n != t_.root, to.load(), to);   // at the root a tile may be the whole output
        };
        std::vector<Obj> all{each_element(below, n->tiles, begin), emit(below)};
        // Restored elements are finished as they are written to the output itself.
        if (restored() ? outputs_.empty() : has_finish()) all.push_back(each_element(below, n->tiles, end));
        return tv::sequence(all);
    }

    // Iterators of the statement that belong to an output element: the written axes solved from its logical index.
    std::vector<Index> iterators_at(const std::vector<Index>& logical) const {
        std::vector<Index> r(s_.axes.size(), Index(std::int64_t{0}));
        for (std::size_t d = 0; d < logical.size(); ++d) {
            const Affine& f = s_.write.index[d];
            std::vector<std::pair<std::int64_t, std::size_t>> here;
            for (std::size_t a = 0; a < f.coefficients.size(); ++a)
                if (f.coefficients[a] != 0) here.emplace_back(f.coefficients[a], a);
            std::sort(here.rbegin(), here.rend());
            for (std::size_t i = 0; i < here.size(); ++i) {
                Index q = (logical[d] - Index(f.offset)) / here[i].first;
                r[here[i].second] = i == 0 ? q : q % s_.axes[here[i].second].extent;
            }
        }
        return r;
    }

    // A storage over a tile. Dimensions that deeper loops walk come last; those that threads walk are left out.
    std::shared_ptr<Storage> storage(const Tree& n, const Tile& tile, const std::string& name, bool local) {
        auto st = std::make_shared<Storage>();
        st->tile = &tile, st->stage = n->stage;
        std::vector<std::pair<int, int>> keys;   // depth, step
        Shape shape;
        for (std::size_t i = 0; i < tile.steps.size(); ++i) {
            int depth = -1;
            bool by_thread = gpu_ && n->buffer == 0;   // copies of inputs are whole for every thread
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
                for (int v : vars) depth = std::max(depth, depth_[static_cast<std::size_t>(v)]);
                const Index& at = place->index[i];
                const TreeNode* loop = at.kind() == Index::Kind::variable ? loop_of_[static_cast<std::size_t>(at.var())] : nullptr;
                by_thread = by_thread && loop && loop->loop == LoopKind::bind && is_thread(loop->place) && (!thread_var || *thread_var == at.var());
                if (loop) thread_var = at.var();
            });
            if (by_thread && tile.steps[i].extent > 1) continue;
            keys.emplace_back(depth, static_cast<int>(i));
        }
        if (local) std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        std::int64_t bytes = 4;
        for (const auto& [depth, step] : keys) {
            st->order.push_back(step);
            shape.push_back(tile.steps[static_cast<std::size_t>(step)].extent);
            bytes *= shape.back();
        }
        if (shape.empty()) shape.push_back(1);
        const char* scope = !local ? "shared" : (gpu_ || bytes <= most_stack_bytes) ? "local" : "global";
        st->buffer = tv::buffer(name, shape, scope);
        return st;
    }

    // Whether loops around a stage may be past the end of a sum that was cut unevenly: then nothing is loaded into it, and nothing may be written back.
    bool may_run_out(const TreeNode& stage, const TreeNode& body) const {
        std::vector<int> vars, outputs;
        for (const Predicate& p : body.predicates)
            if (interval(p.expression, extents_).high >= p.bound) p.expression.collect(vars);
        for (const Index& i : written(body)) i.collect(outputs);
        return std::any_of(vars.begin(), vars.end(), [&](int v) {
            const bool walked_inside = any_node(stage.children[0], [&](const TreeNode& x) { return x.kind == TreeNode::Kind::loop && x.var == v; });
            return !walked_inside && std::find(outputs.begin(), outputs.end(), v) == outputs.end();
        });
    }

    // Vectors that lie across the rows of the output would go there one float at a time, every float to another row. Such a tile is
    // put down in memory as it is and then copied row by row. Gives the tile with its steps in the order of the output's memory, and how
    // many of the last of them lie in one piece there.
    struct Rows {
        Tile tile;
        std::size_t in_one_piece = 0;
    };
    std::optional<Rows> across_rows(const TreeNode& n) const {
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
                across = across || (loop && loop->loop == LoopKind::vector && loop->extent > 1 && strides[i] > 1);
            }
        });
        if (!across || ends) return {};
        std::vector<std::size_t> order(strides.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
        Rows rows{n.tile};
        for (std::size_t i = 0; i < order.size(); ++i) rows.tile.steps[i] = n.tile.steps[order[i]];
        std::int64_t piece = 1;
        for (std::size_t i = order.size(); i-- > 0 && strides[order[i]] == piece && piece * rows.tile.steps[i].extent <= most_lanes; piece *= rows.tile.steps[i].extent) ++rows.in_one_piece;
        const bool whole_rows = std::any_of(order.begin(), order.end(), [&](std::size_t i) { return strides[i] == 1 && n.tile.steps[i].extent > 1; });
        return whole_rows ? std::optional(rows) : std::nullopt;
    }

    bool on_stack(const tv::Buffer& b) const {
        std::int64_t bytes = 4;
        for (std::int64_t d : b.shape) bytes *= d;
        return !gpu_ && bytes <= most_stack_bytes;
    }

    Obj emit_output_stage(const Tree& n) {
        const Tree& below = n->children[0];
        auto st = storage(n, n->tile, "acc" + std::to_string(n->stage), true);
        storages_[static_cast<std::size_t>(n->stage)] = st;
        const bool begins_below = any_node(below, [](const TreeNode& x) { return x.kind == TreeNode::Kind::complete || (x.kind == TreeNode::Kind::stage && x.buffer == 0 && x.owns); });
        outputs_.push_back(st.get());
        auto spot = [&](const std::vector<Index>& logical, const TreeNode* b) -> Spot {
            if (b && b->write.stage == n->stage) return {st->buffer, placed(*st, b->write.index)};
            return in_storage(*st, logical);
        };
        std::vector<Obj> all{tv::allocate(st->buffer, on_stack(st->buffer))};
        const bool assigns = s_.combine == Combine::assign;
        if (n->owns && !assigns) all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) { return spot(logical, b).store(identity()); }));
        else if (!assigns && !begins_below)
            all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) { return spot(logical, b).store(output(logical, 1).load()); }));
        all.push_back(emit(below));
        auto write = [&](const std::vector<Index>& logical, const Spot& from) {
            const Spot to = output(logical, 1);
            const bool finishes = restored() ? to_global(to) && (n->owns || begins_below) : n->owns && !assigns;
            return finishes ? finish_element(logical, true, from.load(), to) : tv::guarded(here(to), to.store(from.load()));
        };
        if (const auto rows = outputs_.size() == 1 ? across_rows(*n) : std::nullopt) {
            Storage put = *st;
            put.buffer = tv::buffer("rows" + std::to_string(n->stage), st->buffer.shape, "local");
            all.push_back(tv::allocate(put.buffer, on_stack(put.buffer)));
            all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) {
                const Spot from = spot(logical, b);
                return put.buffer.store(from.load(), from.at);
            }));
            all.push_back(over_rows(rows->tile, restored() ? 0 : rows->in_one_piece, [&] {
                std::vector<Expr> steps;
                for (const Tile::Step& s : n->tile.steps) steps.push_back(env_[static_cast<std::size_t>(s.var)]);
                return write(n->tile.index, {put.buffer, physical(put, steps)});
            }));
        } else {
            all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) { return write(logical, spot(logical, b)); }));
        }
        outputs_.pop_back();
        return tv::sequence(all);
    }

    Obj emit_input_stage(const Tree& n) {
        const Tree& below = n->children[0];
        const bool shared = gpu_ && n->scope == "shared" && !inside_threads() && !guarded_here();
        auto st = storage(n, n->tile, "tile" + std::to_string(n->stage), !shared);
        bool padded = false;
        for (const Access& a : s_.reads) padded = padded || (a.buffer == n->buffer && a.padded);
        auto copy = [&] {
            std::vector<Expr> steps;
            for (const Tile::Step& s : n->tile.steps) steps.push_back(env_[static_cast<std::size_t>(s.var)]);
            return st->buffer.store(read_buffer(n->buffer, n->tile.index, padded), physical(*st, steps));
        };
        std::vector<Obj> all{tv::allocate(st->buffer, on_stack(st->buffer))};
        if (shared) all.push_back(cooperative(n->tile, copy));
        else all.push_back(padded ? copy_rows(n, *st, copy) : copy_tile(n, *st, copy));
        storages_[static_cast<std::size_t>(n->stage)] = st;
        input_stages_[n->buffer].push_back(st.get());
        all.push_back(emit(below));
        input_stages_[n->buffer].pop_back();
        return tv::sequence(all);
    }
    // A copy made by one thread. Steps that threads walk are set to the thread's own.
    Obj copy_tile(const Tree& n, const Storage& st, const std::function<Obj()>& leaf) {
        if (st.order.size() == n->tile.steps.size()) return over_tile(n->tile, spread_below(n->children[0]), leaf);
        throw UserError("a stage of an input outside the loops bound to threads must be (shared ...)");
    }

    // A tile whose last step walks along one dimension, from before its beginning to past its end: each row is what lies outside, then
    // a plain copy, then what lies outside. A test for each element instead costs LLVM more time than all other loops of a convolution.
    Obj copy_rows(const Tree& n, const Storage& st, const std::function<Obj()>& leaf) {
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
            const tv::Variable v = tv::variable("s" + std::to_string(along.var));
            Expr& at = env_[static_cast<std::size_t>(along.var)];
            at = to - from == 1 ? Expr(from) : v.expr() + Expr(from);
            std::vector<Expr> steps;
            for (const Tile::Step& s : tile.steps) steps.push_back(env_[static_cast<std::size_t>(s.var)]);
            const Obj store = st.buffer.store(value(), physical(st, steps));
            return to - from == 1 ? store : tv::loop(v, to - from, tv::LoopKind::serial, store);
        };
        return over_tile(rows, spread_below(n->children[0]), [&] {
            auto beyond = [&] { return outside(); };
            auto value = [&] { return read_buffer(n->buffer, tile.index, false); };
            std::vector<Obj> all;
            if (begin > 0) all.push_back(stretch(0, begin, beyond));
            const Expr row_inside = inside(tile.index, shape, row);
            all.push_back(row_inside.node.defined() ? tv::either(row_inside, stretch(begin, end, value), stretch(begin, end, beyond)) : stretch(begin, end, value));
            if (end < along.extent) all.push_back(stretch(end, along.extent, beyond));
            return tv::sequence(all);
        });
    }

    Obj emit_partial(const Tree& n) {
        const Tree& below = n->children[0];
        Storage st;
        st.tile = &n->tile, st.stage = n->stage, st.lane_var = n->var, st.lane_last = n->loop == LoopKind::vector;
        Shape shape;
        std::int64_t bytes = 4 * n->extent;
        for (std::size_t i = 0; i < n->tile.steps.size(); ++i) {
            st.order.push_back(static_cast<int>(i));
            shape.push_back(n->tile.steps[i].extent);
            bytes *= shape.back();
        }
        shape.insert(st.lane_last ? shape.end() : shape.begin(), n->extent);
        st.buffer = tv::buffer("partial" + std::to_string(n->var), shape, gpu_ || bytes <= most_stack_bytes ? "local" : "global");
        TreeNode lanes;
        lanes.kind = TreeNode::Kind::loop, lanes.extent = n->extent, lanes.var = n->var;
        auto own = [&](const Tile& tile) {
            std::vector<Expr> steps;
            for (const Tile::Step& s : tile.steps) steps.push_back(env_[static_cast<std::size_t>(s.var)]);
            return Spot{st.buffer, physical(st, steps)};
        };
        std::vector<Obj> all{tv::allocate(st.buffer, on_stack(st.buffer))};
        all.push_back(around(lanes, [&] { return over_tile(n->tile, false, [&] { return own(n->tile).store(identity()); }); }, false));
        outputs_.push_back(&st);
        all.push_back(around(*n, [&] { return emit(below); }, true));
        outputs_.pop_back();
        all.push_back(around(lanes, [&] {
            return over_tile(n->tile, false, [&] {
                const Spot to = output(n->tile.index);
                return tv::guarded(here(to), to.store(combined(to.load(), own(n->tile).load())));
            });
        }, false));
        return tv::sequence(all);
    }

    const Domain& domain_;   // of a nest with restore
    RestoredCopies copies_;
};

}  // namespace

LoweredNest lower_nest(const Term& nest, const Target& target, const std::string& name) {
    const Term whole = complete(nest);
    const NestParts parts = nest_parts(whole);
    const Statement statement = statement_of(parts.statement);
    const LoopTree tree = resolve(statement, parts.schedule);   // copies are written with their sources, so elements end where they would anyway
    const Domain domain = parts.restore.empty() ? Domain{} : domain_of(whole);
    return Lowering(statement, tree, domain, target).run(name);
}

}  // namespace loopegg
