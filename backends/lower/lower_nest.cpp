#include "backends/lower/lower_nest.hpp"

#include <optional>
#include <utility>

#include "backends/lower/lower_units.hpp"
#include "backends/lower/restored_copies.hpp"
#include "backends/lower/scalar.hpp"
#include "base/error.hpp"
#include "nest/domain/domain.hpp"
#include "nest/schedule/gpu_estimate.hpp"
#include "nest/term/blockwise.hpp"

namespace loopegg {
namespace {

// Lowers the nodes of a loop tree, one by one.
class Lowering : NestUnits {
public:
    Lowering(const Statement& statement, const LoopTree& tree, const Domain& domain, const Target& target)
        : NestUnits(statement, tree, target), domain_(domain), architecture_(target.architecture()) {
        if (restored()) copies_ = restored_copies(domain, graph_axes(statement));
    }

    LoweredNest run(const std::string& name) {
        LoweredNest result;
        for (std::size_t b = 0; b < s_.buffers.size(); ++b) {
            result.parameters.push_back(parameter(static_cast<int>(b)));
            order_as_tiles(static_cast<int>(b), result.parameters.back());
        }
        Obj body = with_registers(t_.root);
        if (gpu_) body = launched(body, result.launch);
        result.function = tv::primitive(name, buffers_, with_functions(body));
        if (takes_signed_bytes() && int8_.weights >= 0) result.parameters[static_cast<std::size_t>(int8_.weights)].signed_inputs = true;
        result.turns = turns();
        result.units = units_used();
        return result;
    }

    Obj inside(std::vector<OperandView> views) {
        look_through(std::move(views));
        on_one_core();
        return emit(t_.root);
    }

private:
    // The last write of an element: does the statement's finish, and also writes the missing elements that are copies of this one. `computed`: instances are
    // known to compute the element.
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
        all.insert(all.end(), own.begin(), own.end());  // the element itself comes last, because acc may be the element
        return tv::sequence(all);
    }
    bool restored() const { return domain_.restore != Restore::none; }
    Expr here(const Spot& to) { return to_global(to) ? mine() : busy(); }  // the condition on a thread for writing to `to`

    Obj with_registers(const Tree& n) {
        return begins_tiles(n) ? configured(n, [&] { return emit(n); }) : emit(n);
    }

    Obj emit(const Tree& n) {
        switch (n->kind) {
            case TreeNode::Kind::loop:
                if (const auto whole = whole_tile(n)) return emit_whole_tile(*whole);
                if (in_tiles()) return emit_in_tiles(*n);
                if (n->loop == LoopKind::tensor) return gpu_ ? emit_tensor(*n) : emit_rounded(*n);
                if (const std::vector<Tree> ahead = stages_ahead(*n); !ahead.empty()) return emit_ahead(*n, ahead);
                return n->partial ? emit_partial(n)
                                  : around(
                                        *n, [&] { return configures(*n) ? configured(n->children[0], [&] { return turn(*n); }) : turn(*n); },
                                        writes_through(n->children[0], n->var));
            case TreeNode::Kind::cat: return tv::sequence({with_registers(n->children[0]), with_registers(n->children[1])});
            case TreeNode::Kind::complete: return emit_complete(n);
            case TreeNode::Kind::stage: return n->buffer == 0 ? emit_output_stage(n) : emit_input_stage(n);
            case TreeNode::Kind::body: return emit_body(*n);
        }
        return {};
    }

    // The innermost loop that stays a loop prefetches weights, because weights are read once, and a core that waits for memory multiplies nothing.
    Obj turn(const TreeNode& n) {
        const Tree& below = n.children[0];
        Obj body = emit(below);
        if (gpu_ || n.loop != LoopKind::serial || n.extent == 1) return body;
        if (any_node(below, [](const TreeNode& x) {
                return x.kind == TreeNode::Kind::stage || (x.kind == TreeNode::Kind::loop && x.loop == LoopKind::serial && x.extent > 1);
            }))
            return body;
        std::vector<Obj> all = prefetched(below);
        all.push_back(body);
        return tv::sequence(all);
    }

    Obj emit_tensor(const TreeNode& n) {
        if (!has_unit(n.place)) throw UserError(architecture_ + " has no unit that multiplies " + n.place + " numbers: the target's file lists none");
        if (guarded_here()) throw UserError("threads of a warp that multiply on tensor cores must all take part");
        return tensor_step(n);
    }

    // What a unit does on tiles of sums in its registers: the loops around it as they are, and the loops over these tiles written out.
    Obj emit_in_tiles(const TreeNode& n) {
        if (n.loop == LoopKind::tensor) return multiply_tiles();
        if (!is_tile_loop(n))
            return around(
                n, [&] { return turn(n); }, false);
        Scope keep(env_);
        std::vector<Obj> all;
        for (std::int64_t i = 0; i < n.extent; ++i) {
            env_[static_cast<std::size_t>(n.var)] = i;
            all.push_back(emit(n.children[0]));
        }
        return tv::sequence(all);
    }

    // For machines without such a unit: computes the same numbers, one product after another. Packed operands are rounded already.
    Obj emit_rounded(const TreeNode& n) {
        if (n.place == "int8")
            throw UserError("products of int8 numbers want the loops of a unit: (bind tensor.int8 ROWS (unroll DEPTH (unroll COLUMNS ...)))");
        const std::string before = std::exchange(rounded_, packed() ? "" : n.place);
        Obj body = around(
            n, [&] { return emit(n.children[0]); }, false);
        rounded_ = before;
        return body;
    }

    Obj emit_body(const TreeNode& b) {
        const Expr value = scalar(s_.value, [&](const std::string& name) -> Expr {
            for (std::size_t r = 0; r < s_.reads.size(); ++r)
                if (buffer_name(s_.reads[r].buffer) == name) return rounded_.empty() ? read(b, r) : rounded_to(rounded_, read(b, r));
            for (const Coefficient& c : s_.coefficients)
                if (c.name == name) return entry(c, b);
            throw InternalFault("a statement's value names an unknown buffer");
        });
        const Spot to = output(b);
        if (s_.combine != Combine::assign) return tv::guarded(both(holds(b.predicates), here(to)), to.store(combined(to.load(), value)));
        // The finish is done when the element leaves the storage.
        if (restored() && !to_global(to)) return tv::guarded(both(holds(b.predicates), here(to)), to.store(value));
        return tv::guarded(holds(b.predicates), finish_element(written(b), true, value, to));
    }

    // The transform of a whole tile, one dimension after the other. What all rows share is computed once, and coefficients are numbers in the code.
    Obj emit_whole_tile(const WholeTile& w) {
        Scope keep(env_);
        const Coefficient &first = s_.coefficients[0], &second = s_.coefficients[1];
        auto set = [&](int axis, std::int64_t value) {
            const Index& iterator = w.body->iterators[static_cast<std::size_t>(axis)];
            if (iterator.kind() == Index::Kind::variable) env_[static_cast<std::size_t>(iterator.var())] = value;  // an axis of one value has no loop
        };
        auto vector = [&](const std::function<Obj()>& store) {
            if (!w.lanes || w.lanes->extent == 1) return store();
            const tv::Variable lane = tv::variable("lane");
            env_[static_cast<std::size_t>(w.lanes->var)] = lane.expr();
            return tv::loop(lane, w.lanes->extent, tv::LoopKind::vectorized, store());
        };
        const auto rows = static_cast<std::int64_t>(first.values.size()), columns = static_cast<std::int64_t>(second.values[0].size());
        const std::int64_t lanes = w.lanes ? w.lanes->extent : 1;
        const tv::Buffer half = tv::buffer("half", {rows, columns, lanes}, "local");
        const auto lane_here = [&] { return w.lanes && lanes > 1 ? env_[static_cast<std::size_t>(w.lanes->var)] : Expr(0); };
        std::vector<Obj> all{tv::allocate(half, on_stack(half))};
        for (std::int64_t column = 0; column < columns; ++column)
            for (std::int64_t row = 0; row < rows; ++row)
                all.push_back(vector([&] {
                    set(second.column, column);
                    const Expr sum = weighted(first.values[static_cast<std::size_t>(row)], [&](std::int64_t k) {
                        set(first.column, k);
                        return read(*w.body, 0);
                    });
                    return half.store(sum, {row, column, lane_here()});
                }));
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t out = 0; out < static_cast<std::int64_t>(second.values.size()); ++out)
                all.push_back(vector([&] {
                    set(first.row, row), set(second.row, out), set(first.column, 0), set(second.column, 0);
                    const Expr sum = weighted(second.values[static_cast<std::size_t>(out)], [&](std::int64_t k) { return half.load({row, k, lane_here()}); });
                    const Spot to = output(written(*w.body));
                    return tv::guarded(holds(w.body->predicates), w.finishes ? finish_element(written(*w.body), true, sum, to) : to.store(sum));
                }));
        return tv::sequence(all);
    }

    Obj emit_complete(const Tree& n) {
        const Tree& below = n->children[0];
        if (sums_by_threads(*below)) return emit_sums_by_threads(below);
        auto begin = [&](const std::vector<Index>& logical, const TreeNode* b) {
            const Spot to = b && outputs_.empty() ? output(logical) : b ? output(*b) : output(logical);
            return tv::guarded(here(to), to.store(identity()));
        };
        auto end = [&](const std::vector<Index>& logical, const TreeNode* b) {
            const Spot to = output(logical);
            return finish_element(logical, b || n != t_.root, to.load(), to);  // at the root a tile may be the whole output
        };
        std::vector<Obj> all{each_element(below, n->tiles, begin), emit(below)};
        // Restored elements are finished when they are written to the output itself.
        if (restored() ? outputs_.empty() : has_finish()) all.push_back(each_element(below, n->tiles, end));
        return tv::sequence(all);
    }

    // The statement's iterators for an output element: the written axes, solved from its logical index.
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

    Obj emit_output_stage(const Tree& n) {
        const Tree& below = n->children[0];
        auto st = storage(n, n->tile, "acc" + std::to_string(n->stage), true);
        const bool in_slot = !outputs_.empty() && outputs_.back()->slot_of == n.get();  // each element is written once, and the storage is empty before
        storages_[static_cast<std::size_t>(n->stage)] = st;
        const bool begins_below = any_node(
            below, [](const TreeNode& x) { return x.kind == TreeNode::Kind::complete || (x.kind == TreeNode::Kind::stage && x.buffer == 0 && x.owns); });
        outputs_.push_back(st.get());
        auto spot = [&](const std::vector<Index>& logical, const TreeNode* b) -> Spot {
            if (b && b->write.stage == n->stage) return {st->buffer, placed(*st, b->write.index)};
            return in_storage(*st, logical);
        };
        std::vector<Obj> all{tv::allocate(st->buffer, on_stack(st->buffer))};
        const bool assigns = s_.combine == Combine::assign;
        const bool by_unit = n->owns && !in_slot && begin_tiles(n);
        if (by_unit)
            for (const Obj& step : clear_tiles()) all.push_back(step);
        else if ((n->owns || in_slot) && !assigns)
            all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) { return spot(logical, b).store(identity()); }));
        else if (!assigns && !begins_below)
            all.push_back(
                each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) { return spot(logical, b).store(output(logical, 1).load()); }));
        all.push_back(emit(below));
        if (by_unit) all.push_back(store_tiles(*st));
        auto write = [&](const std::vector<Index>& logical, const Spot& from) {
            const Spot to = output(logical, 1);
            const bool finishes = restored() ? to_global(to) && (n->owns || begins_below) : n->owns && !assigns;
            return finishes ? finish_element(logical, true, from.load(), to) : tv::guarded(here(to), to.store(from.load()));
        };
        if (const auto rows = outputs_.size() == 1 ? across_rows(*n) : std::nullopt) {
            Storage put = *st;
            if (s_.coefficients.empty()) {  // sums are in registers; transformed tiles are in memory already
                put.buffer = tv::buffer("rows" + std::to_string(n->stage), st->buffer.shape, "local");
                all.push_back(tv::allocate(put.buffer, on_stack(put.buffer)));
                all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) {
                    const Spot from = spot(logical, b);
                    return put.buffer.store(from.load(), from.at);
                }));
            }
            all.push_back(over_rows(rows->tile, restored() ? 0 : rows->in_one_piece, [&] {
                return write(n->tile.index, {put.buffer, physical(put, steps_here(n->tile))});
            }));
        } else {
            all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) { return write(logical, spot(logical, b)); }));
        }
        outputs_.pop_back();
        return tv::sequence(all);
    }

    Obj emit_input_stage(const Tree& n) {
        const bool shared = gpu_ && n->scope != "local" && !inside_threads() && !guarded_here();
        auto st = storage(n, n->tile, "tile" + std::to_string(n->stage), !shared);
        auto copy = [&] { return tv::guarded(busy(), store_element(*st, n->tile, [&] { return staged_value(*n); })); };
        std::vector<Obj> all{tv::allocate(st->buffer, on_stack(st->buffer))};
        if (gpu_ && packed())
            all.push_back(copy_words(*n, *st));
        else if (st->packed_step >= 0)
            all.push_back(copy_packed(n, *st, copy));
        else if (shared)
            all.push_back(cooperative(n->tile, copied_at_once(*n), [&](const Expr&, const Expr&) { return copy(); }));
        else
            all.push_back(is_padded(*n) ? copy_rows(n, *st, copy) : copy_tile(n, *st, copy));
        all.push_back(emit_staged(n, st));
        return tv::sequence(all);
    }

    // Words are copied, so the step over packed numbers counts words.
    Obj copy_packed(const Tree& n, const Storage& st, const std::function<Obj()>& copy) {
        TreeNode of_words = *n;
        of_words.tile.steps[static_cast<std::size_t>(st.packed_step)].extent /= in_word_;
        const Tree stage = std::make_shared<TreeNode>(std::move(of_words));
        return is_padded(*n) ? copy_rows(stage, st, copy) : copy_tile(stage, st, copy);
    }

    Obj copy_words(const TreeNode& n, const Storage& st) {
        if (st.block == 0 || st.buffer.scope != "shared")
            throw UserError("operands that a warp multiplies are packed in (stage (shared ...)), outside of its threads");
        const tv::Buffer kept = kept_for(n);
        return tv::sequence({tv::allocate(kept, false), fetch_words(n, st, kept), store_words(n, st, kept)});
    }
    // What a thread keeps of the next tile: rounds of copies, and what it copies at once.
    tv::Buffer kept_for(const TreeNode& stage) const {
        const Shares share = shares(stage.tile, copied_at_once(stage));
        const std::int64_t at_once = readers_.contains(stage.buffer) ? 4 : packed_at_once;
        return tv::buffer("kept" + std::to_string(stage.stage), packed() ? Shape{kept_words(stage) / at_once, at_once} : Shape{share.rounds, share.lanes},
                          "local");
    }

    // The code inside a stage of an input, which reads the storage of that stage.
    Obj emit_staged(const Tree& n, const std::shared_ptr<Storage>& st) {
        storages_[static_cast<std::size_t>(n->stage)] = st;
        input_stages_[n->buffer].push_back(st.get());
        Obj body = emit(n->children[0]);
        input_stages_[n->buffer].pop_back();
        return body;
    }

    bool is_padded(const TreeNode& stage) const {
        return std::any_of(s_.reads.begin(), s_.reads.end(), [&](const Access& a) { return a.buffer == stage.buffer && a.padded; });
    }
    // Tensor cores want rounded operands. Weights were rounded before they came here.
    bool rounds_operand(const TreeNode& stage) const {
        return gpu_ && s_.buffers[static_cast<std::size_t>(stage.buffer)].kind != BufferKind::weight &&
               any_node(stage.children[0], [](const TreeNode& x) { return x.kind == TreeNode::Kind::loop && x.loop == LoopKind::tensor; });
    }
    // Padded elements are tested one by one, and operands are rounded one by one.
    std::int64_t copied_at_once(const TreeNode& stage) const { return is_padded(stage) || rounds_operand(stage) ? 1 : 4; }
    Expr staged_value(const TreeNode& stage) {
        const Expr value = read_buffer(stage.buffer, stage.tile.index, is_padded(stage));
        return rounds_operand(stage) ? tv::outer_function("loopegg_tf32", {value}) : value;
    }

    // The stages of inputs that are first in a serial loop, if they are staged ahead and the registers can hold the next tiles.
    std::vector<Tree> stages_ahead(const TreeNode& n) const {
        std::vector<Tree> all;
        if (!gpu_ || n.loop != LoopKind::serial || n.extent == 1 || n.partial || inside_threads() || guarded_here()) return all;
        std::int64_t kept = 0;
        for (const Tree* c = &n.children[0]; (*c)->kind == TreeNode::Kind::stage && (*c)->buffer != 0 && (*c)->scope == "ahead"; c = &(*c)->children[0]) {
            const Shares s = shares((*c)->tile, copied_at_once(**c));
            kept += packed() ? kept_words(**c) : s.rounds * s.lanes;
            all.push_back(*c);
        }
        if (kept > (packed() ? max_kept_packed : max_kept_ahead)) all.clear();
        return all;
    }

    // Each iteration stores the tile that the iteration before fetched, and fetches the tile of the next one. So memory answers while this iteration computes.
    Obj emit_ahead(const TreeNode& n, const std::vector<Tree>& stages) {
        struct Coming {
            Tree stage;
            std::shared_ptr<Storage> tile;
            tv::Buffer kept;
        };
        std::vector<Coming> all;
        std::vector<Obj> out;
        for (const Tree& s : stages) {
            all.push_back({s, storage(s, s->tile, "tile" + std::to_string(s->stage), false), kept_for(*s)});
            out.push_back(tv::allocate(all.back().tile->buffer, false)), out.push_back(tv::allocate(all.back().kept, false));
        }
        const auto fetch = [&](const Expr& turn) {
            Scope keep(env_);
            env_[static_cast<std::size_t>(n.var)] = turn;
            std::vector<Obj> copies;
            for (const Coming& c : all)
                copies.push_back(packed() ? fetch_words(*c.stage, *c.tile, c.kept)
                                          : cooperative(
                                                c.stage->tile, copied_at_once(*c.stage),
                                                [&](const Expr& round, const Expr& lane) {
                                                    return c.kept.store(staged_value(*c.stage), {round, lane});
                                                },
                                                true));
            return tv::sequence(copies);
        };
        out.push_back(fetch(0));
        out.push_back(around(
            n,
            [&] {
                std::vector<Obj> turn;
                for (const Coming& c : all)
                    turn.push_back(packed() ? store_words(*c.stage, *c.tile, c.kept)
                                            : cooperative(
                                                  c.stage->tile, copied_at_once(*c.stage),
                                                  [&](const Expr& round, const Expr& lane) {
                                                      return c.tile->buffer.store(c.kept.load({round, lane}), physical(*c.tile, steps_here(c.stage->tile)));
                                                  },
                                                  true));
                const Expr here = env_[static_cast<std::size_t>(n.var)];
                turn.push_back(tv::guarded(less(here + Expr(1), n.extent), fetch(here + Expr(1))));
                for (const Coming& c : all) {
                    storages_[static_cast<std::size_t>(c.stage->stage)] = c.tile;
                    input_stages_[c.stage->buffer].push_back(c.tile.get());
                }
                turn.push_back(emit(all.back().stage->children[0]));
                for (const Coming& c : all) input_stages_[c.stage->buffer].pop_back();
                return tv::sequence(turn);
            },
            false));
        return tv::sequence(out);
    }

    bool sums_by_threads(const TreeNode& n) const { return gpu_ && n.kind == TreeNode::Kind::loop && n.partial && n.loop == LoopKind::bind && n.extent > 1; }

    // Threads compute parts of sums side by side, store them in shared memory, and add them up together.
    Obj emit_sums_by_threads(const Tree& n) {
        const Tree& below = n->children[0];
        if (below->kind != TreeNode::Kind::stage || below->buffer != 0 || !outputs_.empty() || inside_threads())
            throw UserError("threads that share sums need a stage of O just inside them, and no thread or stage of O around them");
        Storage st;
        st.tile = &n->tile, st.stage = n->stage, st.lane_var = n->var, st.slot_of = below.get();
        Shape shape{n->extent};
        for (std::size_t i = 0; i < n->tile.steps.size(); ++i) st.order.push_back(static_cast<int>(i)), shape.push_back(n->tile.steps[i].extent);
        st.buffer = tv::buffer("partial" + std::to_string(n->var), shape, "shared");
        std::vector<Obj> all{tv::allocate(st.buffer, false)};
        outputs_.push_back(&st);
        all.push_back(around(
            *n, [&] { return emit(below); }, true));
        outputs_.pop_back();
        all.push_back(cooperative(n->tile, 1, [&](const Expr&, const Expr&) {
            Scope keep(env_);
            std::optional<Expr> sum;
            for (std::int64_t part = 0; part < n->extent; ++part) {
                env_[static_cast<std::size_t>(n->var)] = part;
                const Expr one = st.buffer.load(physical(st, steps_here(n->tile)));
                sum = sum ? combined(*sum, one) : one;
            }
            return finish_element(n->tile.index, true, *sum, output(n->tile.index));
        }));
        return tv::sequence(all);
    }

    Obj emit_partial(const Tree& n) {
        if (sums_by_threads(*n)) throw UserError("threads share sums where outputs begin and end, not inside other sums");
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
        st.buffer = tv::buffer("partial" + std::to_string(n->var), shape, gpu_ || bytes <= max_stack_bytes ? "local" : "global");
        TreeNode lanes;
        lanes.kind = TreeNode::Kind::loop, lanes.extent = n->extent, lanes.var = n->var;
        auto own = [&](const Tile& tile) { return Spot{st.buffer, physical(st, steps_here(tile))}; };
        std::vector<Obj> all{tv::allocate(st.buffer, on_stack(st.buffer))};
        all.push_back(around(
            lanes, [&] { return over_tile(n->tile, false, [&] { return own(n->tile).store(identity()); }); }, false));
        outputs_.push_back(&st);
        all.push_back(around(
            *n, [&] { return emit(below); }, true));
        outputs_.pop_back();
        all.push_back(around(
            lanes,
            [&] {
                return over_tile(n->tile, false, [&] {
                    const Spot to = output(n->tile.index);
                    return tv::guarded(here(to), to.store(combined(to.load(), own(n->tile).load())));
                });
            },
            false));
        return tv::sequence(all);
    }

    const Domain& domain_;  // of a nest with restore
    RestoredCopies copies_;
    const std::string architecture_;
    std::string rounded_;  // what a loop around here rounds operands to, on a machine without a unit
};

}  // namespace

LoweredNest lower_nest(const Term& nest, const Target& target, const std::string& name) {
    const Term whole = complete(nest);
    const NestParts parts = nest_parts(whole);
    if (is_blockwise(parts.statement)) return lower_blockwise(whole, target, name);
    const Statement statement = statement_of(parts.statement);
    const LoopTree tree = resolve(statement, parts.schedule);  // copies are written with their sources, so restore does not change where elements end
    const Domain domain = parts.restore.empty() ? Domain{} : domain_of(whole);
    return Lowering(statement, tree, domain, target).run(name);
}

tv::Obj nest_code(const Term& nest, const Target& target, const std::vector<OperandView>& views) {
    const NestParts parts = nest_parts(complete(nest));
    const Statement statement = statement_of(parts.statement);
    const LoopTree tree = resolve(statement, parts.schedule);
    const Domain whole;
    return Lowering(statement, tree, whole, target).inside(views);
}

}  // namespace loopegg
