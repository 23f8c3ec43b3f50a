#include "backends/lower_nest.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "backends/scalar.hpp"
#include "base/error.hpp"
#include "nest/domain.hpp"

namespace loopegg {
namespace {

using tv::Expr;
using tv::Obj;

// Hints with limits: beyond them the loop is an ordinary one, for unrolled code grows with the product of the extents.
constexpr std::int64_t most_unrolled = 2048, most_lanes = 64;
constexpr std::int64_t most_stack_bytes = 16384;

// Storage that lowering makes: of a stage, or of partial sums.
struct Storage {
    tv::Buffer buffer;
    std::vector<int> order;              // physical dimension -> step; steps left out are walked by threads
    const Tile* tile = nullptr;
    int stage = -1;
    int lane_var = -1;                   // partial sums: the loop variable that is a dimension of its own
    bool lane_last = false;
};

std::int64_t element_count(const Tile& tile) {
    std::int64_t n = 1;
    for (const Tile::Step& s : tile.steps) n *= s.extent;
    return n;
}

// The axis 0..2 of "blockIdx.x" and so on.
int place_axis(const std::string& place) { return place.empty() ? 0 : std::clamp(place.back() - 'x', 0, 2); }
bool is_thread(const std::string& place) { return place.starts_with("threadIdx"); }
bool is_block(const std::string& place) { return place.starts_with("blockIdx"); }

class Lowering {
public:
    Lowering(const Statement& statement, const LoopTree& tree, const Domain& domain, const Target& target)
        : s_(statement), t_(tree), domain_(domain), gpu_(target.gpu()), extents_(extents_of(tree)), env_(static_cast<std::size_t>(tree.variables), Expr(0)),
          loop_of_(static_cast<std::size_t>(tree.variables), nullptr), depth_(static_cast<std::size_t>(tree.variables), 0), storages_(static_cast<std::size_t>(tree.stages)) {}

    LoweredNest run(const std::string& name) {
        LoweredNest result;
        scan(t_.root);
        for (std::size_t b = 0; b < s_.buffers.size(); ++b) result.parameters.push_back(parameter(static_cast<int>(b)));
        Obj body = emit(t_.root);
        if (gpu_) body = launched(body, result.launch);
        result.function = tv::primitive(name, buffers_, body);
        return result;
    }

private:
    // ---- buffers ----
    KernelBuffer parameter(int b) {
        const Buffer& from = s_.buffers[static_cast<std::size_t>(b)];
        KernelBuffer p{from.name, from.kind, from.shape, from.blocking, 1, weight_readers(s_, t_, b)};
        Shape shape = from.stored_shape();
        if (!p.readers.empty()) {
            shape = {p.readers.back().start + p.readers.back().elements()};
            readers_[b] = p.readers;
        }
        if (shape.empty()) shape = {1};
        for (std::int64_t d : shape) p.elements *= d;
        buffers_.push_back(tv::buffer(from.name, shape, "global"));
        return p;
    }

    // ---- facts ----
    void scan(const Tree& n, int depth = 0) {
        if (n->kind == TreeNode::Kind::loop) {
            loop_of_[static_cast<std::size_t>(n->var)] = n.get();
            depth_[static_cast<std::size_t>(n->var)] = depth++;
            if (n->loop == LoopKind::bind && gpu_) {
                auto& e = places_[n->place];
                e.extent = std::max(e.extent, n->extent);
            }
        }
        for (const Tree& c : n->children) scan(c, depth);
    }
    template <class F> static void each_body(const Tree& n, F f) {
        if (n->kind == TreeNode::Kind::body) f(*n);
        for (const Tree& c : n->children) each_body(c, f);
    }
    template <class P> static bool any_node(const Tree& n, P p) {
        if (p(*n)) return true;
        return std::any_of(n->children.begin(), n->children.end(), [&](const Tree& c) { return any_node(c, p); });
    }
    std::vector<Index> written(const TreeNode& body) const {
        std::vector<Index> r;
        for (const Affine& a : s_.write.index) r.push_back(a.over(body.iterators));
        return r;
    }
    bool writes_through(const Tree& below, int var) const {
        bool used = false;
        each_body(below, [&](const TreeNode& b) { for (const Index& i : written(b)) used = used || i.uses(var); });
        return used;
    }

    // ---- expressions ----
    Expr expr(const Index& i) const {
        switch (i.kind()) {
            case Index::Kind::constant: return i.value();
            case Index::Kind::variable: return env_[static_cast<std::size_t>(i.var())];
            case Index::Kind::add: return expr(i.left()) + expr(i.right());
            case Index::Kind::multiply: return expr(i.left()) * Expr(i.value());
            case Index::Kind::divide: return floor_div(expr(i.left()), Expr(i.value()));
            case Index::Kind::modulo: return floor_mod(expr(i.left()), Expr(i.value()));
        }
        return 0;
    }
    std::vector<Expr> exprs(const std::vector<Index>& all) const {
        std::vector<Expr> r;
        for (const Index& i : all) r.push_back(expr(i));
        return r;
    }
    Expr holds(const std::vector<Predicate>& all) const {
        Expr c{Obj{nullptr}};
        for (const Predicate& p : all)
            if (interval(p.expression, extents_).high >= p.bound) c = both(c, less(expr(p.expression), p.bound));
        return c;
    }
    // 'inside the buffer', for the dimensions that may leave it
    Expr inside(const std::vector<Index>& index, const Shape& shape) const {
        Expr c{Obj{nullptr}};
        for (std::size_t d = 0; d < index.size(); ++d) {
            const Bounds i = interval(index[d], extents_);
            if (i.low < 0) c = both(c, at_least(expr(index[d]), 0));
            if (i.high >= shape[d]) c = both(c, less(expr(index[d]), shape[d]));
        }
        return c;
    }

    // ---- where things are ----
    // The position in a storage of a logical element of its buffer: each step is a digit of one dimension.
    std::vector<Expr> steps_of(const Tile& tile, const std::vector<Expr>& logical) {
        std::map<int, Expr> value;
        for (std::size_t d = 0; d < tile.index.size(); ++d) {
            const LinearForm form = linear(tile.index[d]);
            std::vector<std::pair<std::int64_t, const Tile::Step*>> here;
            for (const Tile::Step& step : tile.steps)
                for (const auto& [atom, k] : form.terms)
                    if (atom.kind() == Index::Kind::variable && atom.var() == step.var) here.emplace_back(k, &step);
            std::sort(here.begin(), here.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
            Scope keep(env_);
            for (const Tile::Step& step : tile.steps) env_[static_cast<std::size_t>(step.var)] = 0;
            Expr rest = logical[d] - expr(tile.index[d]);   // what the smaller steps must make up; theirs is less than one of the larger
            bool nested = true;   // each step runs inside one of the next larger: digits of one mixed radix
            for (std::size_t i = 1; i < here.size(); ++i) nested = nested && here[i - 1].first == here[i].first * here[i].second->extent;
            for (std::size_t i = 0; i < here.size(); ++i) {
                const auto& [stride, step] = here[i];
                Expr digit = floor_div(rest, stride);
                if (nested && i > 0) digit = floor_mod(digit, step->extent);
                if (!nested) rest = floor_mod(rest, stride);
                value[step->var] = digit;
            }
        }
        std::vector<Expr> r;
        for (const Tile::Step& step : tile.steps) {
            auto found = value.find(step.var);
            r.push_back(found == value.end() ? Expr(0) : found->second);
        }
        return r;
    }
    std::vector<Expr> physical(const Storage& st, const std::vector<Expr>& steps) const {
        std::vector<Expr> r;
        if (st.lane_var >= 0 && !st.lane_last) r.push_back(env_[static_cast<std::size_t>(st.lane_var)]);
        for (int i : st.order) r.push_back(steps[static_cast<std::size_t>(i)]);
        if (st.lane_var >= 0 && st.lane_last) r.push_back(env_[static_cast<std::size_t>(st.lane_var)]);
        if (r.empty()) r.push_back(0);
        return r;
    }
    // An OperandPlace's index; that of partial sums begins with the loop's own variable.
    std::vector<Expr> placed(const Storage& st, const std::vector<Index>& index) const {
        std::vector<Expr> steps = exprs(index);
        if (st.lane_var >= 0) steps.erase(steps.begin());
        return physical(st, steps);
    }
    struct Spot {
        tv::Buffer buffer;
        std::vector<Expr> at;
        Expr load() const { return buffer.load(at); }
        Obj store(const Expr& v) const { return buffer.store(v, at); }
    };
    Spot in_storage(const Storage& st, const std::vector<Expr>& logical) { return {st.buffer, physical(st, steps_of(*st.tile, logical))}; }

    std::vector<Expr> stored(int b, const std::vector<Index>& logical) const {
        auto r = exprs(s_.buffers[static_cast<std::size_t>(b)].stored_index(logical));
        if (r.empty()) r.push_back(0);
        return r;
    }
    std::vector<Expr> stored_exprs(int b, const std::vector<Expr>& logical) {
        std::vector<Index> variables;
        Scope keep(env_);
        const std::size_t first = env_.size();
        for (std::size_t d = 0; d < logical.size(); ++d) {
            env_.push_back(logical[d]);
            variables.push_back(Index::variable(static_cast<int>(first + d)));
        }
        return stored(b, variables);
    }
    // An element of the output, in the innermost storage that stands for it (or `levels_up` further out).
    Spot output(const std::vector<Index>& logical, std::size_t levels_up = 0) {
        if (outputs_.size() > levels_up) return in_storage(*outputs_[outputs_.size() - 1 - levels_up], exprs(logical));
        return {buffers_[0], stored(0, logical)};
    }
    Spot output(const TreeNode& body) {
        if (!outputs_.empty() && outputs_.back()->stage >= 0 && outputs_.back()->stage == body.write.stage)
            return {outputs_.back()->buffer, placed(*outputs_.back(), body.write.index)};
        return output(written(body));
    }
    // The weight's position in visiting order: the reader whose index this is.
    Expr visited(int b, const std::vector<Index>& logical) const {
        for (const WeightReader& r : readers_.at(b)) {
            bool same = true;
            for (std::size_t d = 0; d < logical.size() && same; ++d) {
                const LinearForm form = linear(logical[d]);
                std::size_t found = 0;
                same = form.offset == r.offsets[d];
                for (const auto& [atom, k] : form.terms)
                    for (std::size_t a = 0; a < r.atoms.size(); ++a)
                        if (r.atoms[a].index == atom && r.coefficients[d][a] == k) ++found;
                same = same && found == form.terms.size();
            }
            if (!same) continue;
            Expr position = 0;
            for (const WeightReader::Atom& a : r.atoms) position = position * Expr(a.extent) + expr(a.index);
            return position + Expr(r.start);
        }
        throw InternalFault("a weight is read where no reader was noted");
    }
    Expr read_buffer(int b, const std::vector<Index>& logical, bool padded) {
        const Buffer& from = s_.buffers[static_cast<std::size_t>(b)];
        if (auto id = input_stages_.find(b); id != input_stages_.end() && !id->second.empty()) return in_storage(*id->second.back(), exprs(logical)).load();
        if (readers_.contains(b)) return buffers_[static_cast<std::size_t>(b)].load({visited(b, logical)});
        const Expr value = buffers_[static_cast<std::size_t>(b)].load(stored(b, logical));
        return padded ? choose(inside(logical, from.shape), value, finite(s_.outside)) : value;
    }
    Expr read(const TreeNode& body, std::size_t r) {
        const Access& access = s_.reads[r];
        const OperandPlace& place = body.reads[r];
        if (place.stage >= 0) {
            const Storage& st = *storages_[static_cast<std::size_t>(place.stage)];
            return st.buffer.load(physical(st, exprs(place.index)));
        }
        return read_buffer(access.buffer, place.index, access.padded);
    }
    const std::string& buffer_name(int b) const { return s_.buffers[static_cast<std::size_t>(b)].name; }

    // The statement's last step, for the element at a logical index that holds `acc`.
    Expr finished(const Expr& acc, const std::vector<Index>& logical) {
        if (!s_.finish) return acc;
        return scalar(s_.finish, [&](const std::string& name) -> Expr {
            if (name == "acc") return acc;
            for (const FinishRead& f : s_.finish_reads)
                if (buffer_name(f.buffer) == name) {
                    std::vector<Index> at;
                    for (int d : f.dimensions) at.push_back(logical[static_cast<std::size_t>(d)]);
                    return buffers_[static_cast<std::size_t>(f.buffer)].load(stored(f.buffer, at));
                }
            throw InternalFault("the last step of a statement names an unknown buffer");
        });
    }
    bool has_finish() const { return s_.finish && !(s_.finish.size() == 0 && s_.finish.op().text() == "acc"); }
    Expr combined(const Expr& a, const Expr& b) const {
        return s_.combine == Combine::max ? tv::binary(tv::Fn::max, a, b) : tv::binary(tv::Fn::add, a, b);
    }
    // Infinities become the largest float: CUDA C spells infinity only with a header.
    static Expr finite(double v) { return tv::float_value(std::clamp(v, -3.4028234663852886e38, 3.4028234663852886e38)); }
    Expr identity() const { return finite(s_.identity()); }

    // ---- loops ----
    using Env = std::vector<Expr>;
    struct Scope {   // puts the environment back
        explicit Scope(Env& e) : env(e), kept(e) {}
        ~Scope() { env = kept; }
        Env& env;
        Env kept;
    };
    struct PlaceUse {
        std::int64_t extent = 1;
        tv::Variable var;
        int depth = 0;   // how many loops around here are bound to it
    };
    Expr place_variable(PlaceUse& p, const std::string& name) {
        if (!p.var.node.defined()) p.var = tv::variable(name == "vthread" ? "vthread" : name);
        return p.var.expr();
    }
    // On a GPU every thread runs the whole program: what is not inside a loop bound to a place is for the first of that place alone.
    Expr mine() {
        Expr c = guard_;
        for (auto& [name, p] : places_)
            if (p.extent > 1 && p.depth == 0 && name != "vthread") c = both(c, less(place_variable(p, name), 1));
        return c;
    }

    // TVM makes vectors of plain statements: storage, threads or vectors inside keep a loop a loop.
    static bool plain_below(const TreeNode& n) {
        for (const Tree& c : n.children) {
            if (c->kind == TreeNode::Kind::stage || (c->kind == TreeNode::Kind::loop && (c->partial || c->loop == LoopKind::vector || c->loop == LoopKind::parallel))) return false;
            if (!plain_below(*c)) return false;
        }
        return true;
    }
    // One loop around what `inner` makes. The variable is fresh each time, so that a tree may be walked more than once.
    Obj around(const TreeNode& n, const std::function<Obj()>& inner, bool may_vectorize) {
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
        if (n.loop == LoopKind::parallel && !gpu_ && !in_parallel_) kind = tv::LoopKind::parallel, in_parallel_ = true;
        const bool wants_unroll = n.loop == LoopKind::unroll || (gpu_ && (n.loop == LoopKind::vector || n.loop == LoopKind::bind));
        if (wants_unroll && unrolled_ * n.extent <= most_unrolled) kind = tv::LoopKind::unrolled, unrolled_ *= n.extent;
        if (n.loop == LoopKind::vector && !gpu_ && may_vectorize && n.extent <= most_lanes && plain_below(n)) kind = tv::LoopKind::vectorized;
        const tv::Variable v = tv::variable("v" + std::to_string(n.var));
        slot = v.expr();
        Obj body = inner();
        slot = before, unrolled_ = unrolled_before, in_parallel_ = parallel_before;
        return tv::loop(v, n.extent, kind, body);
    }

    // Loops over the steps of a tile, innermost body from `leaf`; the first one may run on several cores.
    Obj over_tile(const Tile& tile, bool parallel, const std::function<Obj()>& leaf) {
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
        for (std::size_t i = tile.steps.size(); i-- > 0;)
            if (tile.steps[i].extent > 1) body = tv::loop(vars[i], tile.steps[i].extent, static_cast<int>(i) == outermost ? tv::LoopKind::parallel : tv::LoopKind::serial, body);
        return body;
    }
    bool spread_below(const Tree& n) const {
        return !gpu_ && !in_parallel_ && any_node(n, [](const TreeNode& x) { return x.kind == TreeNode::Kind::loop && x.loop == LoopKind::parallel; });
    }

    // The loops of a tree that output elements depend on, with their kinds: visits each element of the output once.
    // False if a loop walks outputs and something else at once, or two parts visit the same element: then tiles are walked instead.
    bool projectable(const Tree& n, std::int64_t elements) const { return points(n, n) == elements; }
    std::int64_t points(const Tree& n, const Tree& root) const {
        switch (n->kind) {
            case TreeNode::Kind::loop: return (writes_through(n->children[0], n->var) ? n->extent : 1) * points(n->children[0], root);
            case TreeNode::Kind::cat: return points(n->children[0], root) + points(n->children[1], root);
            case TreeNode::Kind::body: return 1;
            default: return points(n->children[0], root);
        }
    }
    Obj project(const Tree& n, const std::function<Obj(const TreeNode&)>& leaf) {
        switch (n->kind) {
            case TreeNode::Kind::loop: {
                if (writes_through(n->children[0], n->var)) return around(*n, [&] { return project(n->children[0], leaf); }, true);
                Scope keep(env_);
                env_[static_cast<std::size_t>(n->var)] = 0;
                return project(n->children[0], leaf);
            }
            case TreeNode::Kind::cat: return tv::sequence({project(n->children[0], leaf), project(n->children[1], leaf)});
            case TreeNode::Kind::body: return tv::guarded(both(holds(n->predicates), Expr(Obj{nullptr})), leaf(*n));
            default: return project(n->children[0], leaf);
        }
    }
    bool bound_below(const Tree& n) const {
        return gpu_ && any_node(n, [](const TreeNode& x) { return x.kind == TreeNode::Kind::loop && x.loop == LoopKind::bind && x.extent > 1; });
    }
    // Does something once to each output element that the tree below writes: `leaf` gets its logical index and the statement's iterators.
    using ElementLeaf = std::function<Obj(const std::vector<Index>& logical, const TreeNode* body)>;
    Obj each_element(const Tree& below, const std::vector<Tile>& tiles, const ElementLeaf& leaf) {
        std::int64_t elements = 0;
        for (const Tile& t : tiles) elements += element_count(t);
        if (projectable(below, elements)) return project(below, [&](const TreeNode& b) { return leaf(written(b), &b); });
        if (bound_below(below)) throw UserError("threads are bound inside a part of the schedule that begins and ends outputs in an order that threads cannot share");
        std::vector<Obj> all;
        for (const Tile& t : tiles) all.push_back(over_tile(t, spread_below(below), [&] { return leaf(t.index, nullptr); }));
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
    Obj finish_element(const std::vector<Index>& logical, const Expr& acc, const Spot& to) {
        return tv::guarded(to_global(to) ? mine() : Expr(Obj{nullptr}), to.store(finished(acc, logical)));
    }
    bool to_global(const Spot& spot) const { return spot.buffer.node.same_as(buffers_[0].node); }

    // ---- nodes ----
    Obj emit(const Tree& n) {
        switch (n->kind) {
            case TreeNode::Kind::loop: return n->partial ? emit_partial(n) : around(*n, [&] { return emit(n->children[0]); }, writes_through(n->children[0], n->var));
            case TreeNode::Kind::cat: return tv::sequence({emit(n->children[0]), emit(n->children[1])});
            case TreeNode::Kind::complete: return emit_complete(n);
            case TreeNode::Kind::stage: return n->buffer == 0 ? emit_output_stage(n) : emit_input_stage(n);
            case TreeNode::Kind::body: return emit_body(*n);
        }
        return {};
    }

    Obj emit_body(const TreeNode& b) {
        const Expr value = scalar(s_.value, [&](const std::string& name) -> Expr {
            for (std::size_t r = 0; r < s_.reads.size(); ++r)
                if (buffer_name(s_.reads[r].buffer) == name) return read(b, r);
            throw InternalFault("a statement's value names an unknown buffer");
        });
        const Spot to = output(b);
        const Expr result = s_.combine == Combine::assign ? finished(value, written(b)) : combined(to.load(), value);
        return tv::guarded(both(holds(b.predicates), to_global(to) ? mine() : Expr(Obj{nullptr})), to.store(result));
    }

    Obj emit_complete(const Tree& n) {
        const Tree& below = n->children[0];
        auto begin = [&](const std::vector<Index>& logical, const TreeNode* b) {
            const Spot to = b && outputs_.empty() ? output(logical) : b ? output(*b) : output(logical);
            return tv::guarded(to_global(to) ? mine() : Expr(Obj{nullptr}), to.store(identity()));
        };
        auto end = [&](const std::vector<Index>& logical, const TreeNode*) {
            const Spot to = output(logical);
            return finish_element(logical, to.load(), to);
        };
        std::vector<Obj> all{each_element(below, n->tiles, begin), emit(below)};
        if (domain_.restore != Restore::none) all.push_back(over_tile(n->tiles[0], spread_below(below), [&] { return restore_element(n->tiles[0].index); }));
        if (has_finish()) all.push_back(each_element(below, n->tiles, end));
        return tv::sequence(all);
    }

    // A missing output element comes back from the one whose digits lie in the kept ranges (output_sources of graph/domain_sets.hpp).
    Obj restore_element(const std::vector<Index>& logical) {
        if (gpu_) throw UserError("restored outputs are lowered for CPUs alone");
        if (domain_.parts.size() != 1) throw UserError("a restored nest of several parts");
        const std::vector<Index> here = iterators_at(logical);
        std::vector<Expr> from = exprs(here);
        Expr computed{Obj{nullptr}};
        auto digit = [](const Expr& value, const Digit& d) { return floor_mod(floor_div(value, d.stride), d.radix); };
        auto replaced = [&](const Expr& value, const Digit& d, const Expr& to) { return value + (to - digit(value, d)) * Expr(d.stride); };
        auto written_axis = [&](const Digit& d) { return s_.writes_axis(s_.axis(d.axis)) ? s_.axis(d.axis) : -1; };
        for (const DigitRange& r : domain_.parts[0].ranges)
            if (int a = written_axis(r.digit); a >= 0) {
                Expr& value = from[static_cast<std::size_t>(a)];
                const Expr d = digit(value, r.digit);
                computed = both(computed, both(at_least(d, r.lo), less(d, r.hi)));
                value = replaced(value, r.digit, Expr(r.lo) + floor_mod(d - Expr(r.lo) + Expr(r.digit.radix * (r.hi - r.lo)), r.hi - r.lo));
            }
        for (const DigitPair& p : domain_.parts[0].diagonals)
            if (int i = written_axis(p.first), j = written_axis(p.second); i >= 0 && j >= 0) {
                Expr& value = from[static_cast<std::size_t>(j)];
                computed = both(computed, tv::binary(tv::Fn::eq, digit(value, p.second), digit(from[static_cast<std::size_t>(i)], p.first)));
                value = replaced(value, p.second, digit(from[static_cast<std::size_t>(i)], p.first));
            }
        const Spot to = output(logical);
        if (domain_.restore == Restore::zero) return to.store(choose(computed, to.load(), tv::float_value(0)));
        std::vector<Expr> source;
        for (const Affine& f : s_.write.index) {
            Expr e = f.offset;
            for (std::size_t a = 0; a < f.coefficients.size(); ++a) e = e + from[a] * Expr(f.coefficients[a]);
            source.push_back(e);
        }
        return to.store(buffers_[0].load(stored_exprs(0, source)));
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

    Obj emit_output_stage(const Tree& n) {
        const Tree& below = n->children[0];
        auto st = storage(n, n->tile, "acc" + std::to_string(n->stage), true);
        storages_[static_cast<std::size_t>(n->stage)] = st;
        const bool begins_below = any_node(below, [](const TreeNode& x) { return x.kind == TreeNode::Kind::complete || (x.kind == TreeNode::Kind::stage && x.buffer == 0 && x.owns); });
        outputs_.push_back(st.get());
        auto spot = [&](const std::vector<Index>& logical, const TreeNode* b) -> Spot {
            if (b && b->write.stage == n->stage) return {st->buffer, placed(*st, b->write.index)};
            return in_storage(*st, exprs(logical));
        };
        std::vector<Obj> all{tv::allocate(st->buffer)};
        const bool assigns = s_.combine == Combine::assign;
        if (n->owns && !assigns) all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) { return spot(logical, b).store(identity()); }));
        else if (!assigns && !begins_below)
            all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) { return spot(logical, b).store(output(logical, 1).load()); }));
        all.push_back(emit(below));
        all.push_back(each_element(below, {n->tile}, [&](const auto& logical, const TreeNode* b) {
            const Spot from = spot(logical, b), to = output(logical, 1);
            if (n->owns && !assigns) return finish_element(logical, from.load(), to);
            return tv::guarded(to_global(to) ? mine() : Expr(Obj{nullptr}), to.store(from.load()));
        }));
        outputs_.pop_back();
        return tv::sequence(all);
    }

    Obj emit_input_stage(const Tree& n) {
        const Tree& below = n->children[0];
        bool inside_threads = false;
        for (auto& [name, p] : places_) inside_threads = inside_threads || (is_thread(name) && p.depth > 0);
        const bool shared = gpu_ && n->scope == "shared" && !inside_threads && !guard_.node.defined();
        auto st = storage(n, n->tile, "tile" + std::to_string(n->stage), !shared);
        bool padded = false;
        for (const Access& a : s_.reads) padded = padded || (a.buffer == n->buffer && a.padded);
        auto copy = [&] {
            std::vector<Expr> steps;
            for (const Tile::Step& s : n->tile.steps) steps.push_back(env_[static_cast<std::size_t>(s.var)]);
            return st->buffer.store(read_buffer(n->buffer, n->tile.index, padded), physical(*st, steps));
        };
        std::vector<Obj> all{tv::allocate(st->buffer)};
        if (shared) all.push_back(cooperative(n->tile, copy));
        else all.push_back(copy_tile(n, *st, copy));
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
    // All threads of a block copy a tile together.
    Obj cooperative(const Tile& tile, const std::function<Obj()>& leaf) {
        std::int64_t threads = 1;
        Expr me = 0;
        for (auto& [name, p] : places_)
            if (is_thread(name)) me = me * Expr(p.extent) + place_variable(p, name), threads *= p.extent;
        const std::int64_t total = element_count(tile), rounds = (total + threads - 1) / threads;
        const tv::Variable r = tv::variable("copy");
        const Expr flat = (rounds == 1 ? Expr(0) : r.expr() * Expr(threads)) + me;
        Scope keep(env_);
        std::int64_t stride = 1;
        for (std::size_t i = tile.steps.size(); i-- > 0;) {
            Expr e = floor_div(flat, stride);
            stride *= tile.steps[i].extent;
            if (stride < total) e = floor_mod(e, tile.steps[i].extent);
            env_[static_cast<std::size_t>(tile.steps[i].var)] = e;
        }
        Expr in_range{Obj{nullptr}};
        if (rounds * threads > total) in_range = less(flat, total);
        Obj body = tv::guarded(both(in_range, holds(tile.predicates)), leaf());
        return rounds == 1 ? body : tv::loop(r, rounds, tv::LoopKind::serial, body);
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
        std::vector<Obj> all{tv::allocate(st.buffer)};
        all.push_back(around(lanes, [&] { return over_tile(n->tile, false, [&] { return own(n->tile).store(identity()); }); }, false));
        outputs_.push_back(&st);
        all.push_back(around(*n, [&] { return emit(below); }, true));
        outputs_.pop_back();
        all.push_back(around(lanes, [&] {
            return over_tile(n->tile, false, [&] {
                const Spot to = output(n->tile.index);
                return tv::guarded(to_global(to) ? mine() : Expr(Obj{nullptr}), to.store(combined(to.load(), own(n->tile).load())));
            });
        }, false));
        return tv::sequence(all);
    }

    // On a GPU: the whole program inside the launch.
    Obj launched(Obj body, Launch& launch) {
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

    const Statement& s_;
    const LoopTree& t_;
    const Domain& domain_;   // of a nest with restore
    const bool gpu_;
    std::vector<std::int64_t> extents_;
    Env env_;
    std::vector<const TreeNode*> loop_of_;
    std::vector<int> depth_;
    std::vector<tv::Buffer> buffers_;
    std::map<int, std::vector<WeightReader>> readers_;
    std::vector<std::shared_ptr<Storage>> storages_;        // by stage
    std::map<int, std::vector<const Storage*>> input_stages_;   // by buffer, innermost last
    std::vector<const Storage*> outputs_;                   // what stands for the output, innermost last
    std::map<std::string, PlaceUse> places_;
    Expr guard_{Obj{nullptr}};
    std::int64_t unrolled_ = 1;
    bool in_parallel_ = false;
};

}  // namespace

LoweredNest lower_nest(const Term& nest, const Target& target, const std::string& name) {
    const Term whole = complete(nest);
    const NestParts parts = nest_parts(whole);
    const Statement statement = statement_of(parts.statement);
    const LoopTree tree = resolve(whole);
    const Domain domain = parts.restore.empty() ? Domain{} : domain_of(whole);
    return Lowering(statement, tree, domain, target).run(name);
}

}  // namespace loopegg
