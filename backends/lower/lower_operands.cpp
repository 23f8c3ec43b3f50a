#include "backends/lower/lower_operands.hpp"

#include <cmath>
#include <optional>

#include "backends/lower/elementary.hpp"
#include "backends/lower/lower_nest.hpp"
#include "backends/lower/scalar.hpp"
#include "backends/lower/unit_loops.hpp"
#include "base/error.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {

using tv::Expr;
using tv::Obj;

namespace {

// In floats: how far ahead weights are prefetched (a page, where the processor's own prefetching ends), how many at once at most, and a cache line.
constexpr std::int64_t far_ahead = 1024, max_asked = 1024, line = 16;

// CUDA C has infinity only with a header, so kernels for GPUs write infinity by its bits.
Expr constant(double v, bool gpu) {
    if (!gpu || !std::isinf(v)) return tv::float_value(v);
    return tv::outer_function("__int_as_float", {Expr(v > 0 ? 0x7f800000 : -0x00800000)});
}

// The terms of a logical index, one for each step of the tile (zero where the index has none); none unless these terms make up the whole index.
std::optional<std::vector<Index>> matching_steps(const Tile& tile, const std::vector<Index>& logical, const std::vector<std::int64_t>& extents) {
    std::map<int, Index> value;
    for (std::size_t d = 0; d < tile.index.size(); ++d) {
        const LinearForm of_tile = linear(tile.index[d]);
        LinearForm rest = linear(logical[d]);
        if (rest.offset != of_tile.offset) return {};
        for (const auto& [atom, k] : of_tile.terms) {
            const auto step = std::find_if(tile.steps.begin(), tile.steps.end(),
                                           [&a = atom](const Tile::Step& s) { return a.kind() == Index::Kind::variable && a.var() == s.var; });
            const bool outside = step == tile.steps.end();  // fixed while the tile is walked
            const auto same = std::find_if(rest.terms.begin(), rest.terms.end(), [&, &a = atom, &k = k](const auto& term) {
                if (term.second != k) return false;
                if (outside) return term.first == a;
                const Bounds reach = interval(term.first, extents);
                return reach.low == 0 && reach.high < step->extent;
            });
            if (same == rest.terms.end()) {
                if (outside) return {};
                continue;
            }
            if (!outside && !value.emplace(step->var, same->first).second) return {};  // the step counts in two dimensions
            rest.terms.erase(same);
        }
        if (!rest.terms.empty()) return {};
    }
    std::vector<Index> steps;
    for (const Tile::Step& step : tile.steps) {
        const auto found = value.find(step.var);
        steps.push_back(found == value.end() ? Index(std::int64_t{0}) : found->second);
    }
    return steps;
}

}  // namespace

std::int64_t element_count(const Tile& tile) {
    std::int64_t n = 1;
    for (const Tile::Step& s : tile.steps) n *= s.extent;
    return n;
}

NestOperands::NestOperands(const Statement& statement, const LoopTree& tree, bool gpu)
    : s_(statement),
      t_(tree),
      gpu_(gpu),
      packed_kind_(gpu ? packed_kind_of_warps(tree) : packed_kind(statement, tree)),
      in_word_(packed_kind_.empty() ? 1 : numbers_in_word(packed_kind_)),
      extents_(extents_of(tree)),
      env_(static_cast<std::size_t>(tree.variables) + 1, Expr(0)),
      storages_(static_cast<std::size_t>(tree.stages)) {}

KernelBuffer NestOperands::parameter(int b) {
    const Buffer& from = s_.buffers[static_cast<std::size_t>(b)];
    KernelBuffer p{from.name, from.kind, from.shape, from.blocking, 1, weight_readers(s_, t_, b)};
    Shape shape = from.stored_shape();
    if (!p.readers.empty()) {
        shape = {p.readers.back().start + p.readers.back().elements()};
        readers_[b] = p.readers;
    }
    if (shape.empty()) shape = {1};
    for (std::int64_t d : shape) p.elements *= d;
    const bool multiplied = from.kind == BufferKind::weight && std::any_of(s_.reads.begin(), s_.reads.end(), [&](const Access& a) { return a.buffer == b; });
    if (multiplied)
        any_node(t_.root, [&](const TreeNode& x) {
            if (x.kind == TreeNode::Kind::loop && x.loop == LoopKind::tensor) p.rounding = x.place;
            return !p.rounding.empty();
        });
    if (multiplied && packed() && !p.readers.empty()) {
        p.in_word = in_word_;
        p.elements = (p.elements + in_word_ - 1) / in_word_;
        if (int8()) int8_ = {b, p.elements, from.shape[0]}, p.elements += int8_tail(from.shape[0]);
        shape = {p.elements};
    }
    buffers_.push_back(tv::buffer(from.name, shape, "global"));
    return p;
}

void NestOperands::look_through(std::vector<OperandView> views) {
    require(views.size() == s_.buffers.size(), "there is a view for each buffer");
    for (const OperandView& v : views) buffers_.push_back(v.buffer);
    views_ = std::move(views);
}

std::vector<Index> NestOperands::written(const TreeNode& body) const {
    std::vector<Index> r;
    for (const Affine& a : s_.write.index) r.push_back(a.over(body.iterators));
    return r;
}

bool NestOperands::writes_through(const Tree& below, int var) const {
    bool used = false;
    each_body(below, [&](const TreeNode& b) {
        for (const Index& i : written(b)) used = used || i.uses(var);
    });
    return used;
}

Expr NestOperands::expr(const Index& i) const {
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

std::vector<Expr> NestOperands::exprs(const std::vector<Index>& all) const {
    std::vector<Expr> r;
    for (const Index& i : all) r.push_back(expr(i));
    return r;
}

Expr NestOperands::holds(const std::vector<Predicate>& all) const {
    Expr c{Obj{nullptr}};
    for (const Predicate& p : all)
        if (interval(p.expression, extents_).high >= p.bound) c = both(c, less(expr(p.expression), p.bound));
    return c;
}

// The condition that an index is inside the buffer, for the dimensions that may leave it. The dimension `but` is known to be inside.
Expr NestOperands::inside(const std::vector<Index>& index, const Shape& shape, std::size_t but) const {
    Expr c{Obj{nullptr}};
    for (std::size_t d = 0; d < index.size(); ++d) {
        if (d == but) continue;
        const Bounds i = interval(index[d], extents_);
        if (i.low < 0) c = both(c, at_least(expr(index[d]), 0));
        if (i.high >= shape[d]) c = both(c, less(expr(index[d]), shape[d]));
    }
    return c;
}

// The position in a storage of a logical element of its buffer. Where the element's index is a sum of the same form as the tile's, its terms are the steps.
// That avoids divisions, and TVM's passes fail to simplify deep ones.
std::vector<Expr> NestOperands::steps_of(const Tile& tile, const std::vector<Index>& logical) {
    const auto matched = matching_steps(tile, logical, extents_);
    return matched ? exprs(*matched) : solved_steps(tile, exprs(logical));
}

// Each step is a digit of one dimension.
std::vector<Expr> NestOperands::solved_steps(const Tile& tile, const std::vector<Expr>& logical) {
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
        Expr rest = logical[d] - expr(tile.index[d]);  // what the smaller steps must add up to, which is less than one larger step
        bool nested = true;                            // each step runs inside one of the next larger: digits of one mixed radix
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

// Blocks of the packed step are outermost, and the words of a block innermost.
std::vector<Expr> NestOperands::flat_words(const Storage& st, const std::vector<Expr>& steps) const {
    const Expr& packed = steps[static_cast<std::size_t>(st.packed_step)];
    Expr at = floor_div(packed, st.block);
    for (int i : st.order)
        if (i != st.packed_step) at = at * Expr(st.tile->steps[static_cast<std::size_t>(i)].extent) + steps[static_cast<std::size_t>(i)];
    std::vector<Expr> r = st.slices;
    r.push_back(at * Expr(st.block / in_word_) + floor_div(floor_mod(packed, st.block), in_word_));
    return r;
}

std::vector<Expr> NestOperands::physical(const Storage& st, const std::vector<Expr>& steps) const {
    if (st.block > 0) return flat_words(st, steps);
    std::vector<Expr> r = st.slices;
    if (st.lane_var >= 0 && !st.lane_last) r.push_back(env_[static_cast<std::size_t>(st.lane_var)]);
    for (int i : st.order) r.push_back(i == st.packed_step ? floor_div(steps[static_cast<std::size_t>(i)], in_word_) : steps[static_cast<std::size_t>(i)]);
    if (st.lane_var >= 0 && st.lane_last) r.push_back(env_[static_cast<std::size_t>(st.lane_var)]);
    if (r.empty()) r.push_back(0);
    return r;
}

// The position for an OperandPlace's index. The index of partial sums begins with the loop's own variable.
std::vector<Expr> NestOperands::placed(const Storage& st, const std::vector<Index>& index) const {
    std::vector<Expr> steps = exprs(index);
    if (st.lane_var >= 0) steps.erase(steps.begin());
    return physical(st, steps);
}

std::vector<Expr> NestOperands::stored(int b, const std::vector<Index>& logical) const {
    if (!views_.empty()) {
        const OperandView& view = views_[static_cast<std::size_t>(b)];
        Expr position = view.begin;
        for (std::size_t d = 0; d < logical.size(); ++d) position = position + expr(logical[d]) * Expr(view.strides[d]);
        return {position};
    }
    auto r = exprs(s_.buffers[static_cast<std::size_t>(b)].stored_index(logical));
    if (r.empty()) r.push_back(0);
    return r;
}

// An element of the output, in the innermost storage of the output (or `levels_up` further out).
NestOperands::Spot NestOperands::output(const std::vector<Index>& logical, std::size_t levels_up) {
    if (outputs_.size() > levels_up) return in_storage(*outputs_[outputs_.size() - 1 - levels_up], logical);
    return {buffers_[0], stored(0, logical)};
}

NestOperands::Spot NestOperands::output(const TreeNode& body) {
    if (!outputs_.empty() && outputs_.back()->stage >= 0 && outputs_.back()->stage == body.write.stage)
        return {outputs_.back()->buffer, placed(*outputs_.back(), body.write.index)};
    return output(written(body));
}

// The reader whose index this is.
const WeightReader& NestOperands::reader_of(int b, const std::vector<Index>& logical) const {
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
        if (same) return r;
    }
    throw InternalFault("a weight is read where no reader was noted");
}

// The weight's position in visiting order.
Expr NestOperands::visited(int b, const std::vector<Index>& logical) const {
    const WeightReader& r = reader_of(b, logical);
    Expr position = 0;
    for (std::size_t a = 0; a + (packed() ? 1 : 0) < r.atoms.size(); ++a) position = position * Expr(r.atoms[a].extent) + expr(r.atoms[a].index);
    return position + Expr(r.start / in_word_);
}

std::vector<Obj> NestOperands::prefetched(const Tree& below) const {
    std::vector<Obj> all;
    std::vector<const TreeNode*> bodies;
    each_body(below, [&](const TreeNode& b) { bodies.push_back(&b); });
    if (bodies.size() != 1) return all;  // parts of a cat have weights of their own
    for (std::size_t r = 0; r < s_.reads.size(); ++r) {
        const int b = s_.reads[r].buffer;
        const auto readers = readers_.find(b);
        if (readers == readers_.end() || readers->second.size() != 1 || bodies[0]->reads[r].stage >= 0) continue;
        std::int64_t turn = 1;  // floats that one iteration reads
        for (const WeightReader::Atom& a : readers->second[0].atoms) {
            std::vector<int> vars;
            a.index.collect(vars);
            if (std::all_of(vars.begin(), vars.end(),
                            [&](int v) { return any_node(below, [&](const TreeNode& n) { return n.kind == TreeNode::Kind::loop && n.var == v; }); }))
                turn *= a.extent;
        }
        turn /= in_word_;
        const Expr position = visited(b, bodies[0]->reads[r].index);
        for (std::int64_t at = 0; at < std::min(turn, max_asked); at += line)
            all.push_back(buffers_[static_cast<std::size_t>(b)].prefetch({position + Expr(far_ahead + at)}));
    }
    return all;
}

Expr NestOperands::read_buffer(int b, const std::vector<Index>& logical, bool padded) {
    const Buffer& from = s_.buffers[static_cast<std::size_t>(b)];
    if (auto id = input_stages_.find(b); id != input_stages_.end() && !id->second.empty()) return in_storage(*id->second.back(), logical).load();
    if (readers_.contains(b)) return buffers_[static_cast<std::size_t>(b)].load({visited(b, logical)});
    const Expr value = buffers_[static_cast<std::size_t>(b)].load(stored(b, logical));
    return padded ? choose(inside(logical, from.shape), value, outside()) : value;
}

Expr NestOperands::read(const TreeNode& body, std::size_t r) {
    const Access& access = s_.reads[r];
    const OperandPlace& place = body.reads[r];
    if (place.stage >= 0) {
        const Storage& st = *storages_[static_cast<std::size_t>(place.stage)];
        const Expr value = st.buffer.load(physical(st, exprs(place.index)));
        return st.packed_step < 0 ? value : unpacked_bf16(value, floor_mod(expr(place.index[static_cast<std::size_t>(st.packed_step)]), 2));
    }
    const Expr value = read_buffer(access.buffer, place.index, access.padded);
    if (!packed() || !readers_.contains(access.buffer)) return value;
    return unpacked_bf16(value, expr(reader_of(access.buffer, place.index).atoms.back().index));
}

std::optional<std::int64_t> NestOperands::word_stride(const TreeNode& body, std::size_t r, int var) const {
    const OperandPlace& place = body.reads[r];
    std::vector<std::pair<Index, std::int64_t>> dimensions;  // index, distance
    std::optional<std::size_t> packed;                       // the dimension whose neighbours share words
    if (place.stage >= 0) {
        const Storage& st = *storages_[static_cast<std::size_t>(place.stage)];
        std::int64_t distance = 1;
        for (std::size_t i = st.order.size(); i-- > 0; distance *= st.buffer.shape[i]) {
            if (st.order[i] == st.packed_step) packed = dimensions.size();
            dimensions.emplace_back(place.index[static_cast<std::size_t>(st.order[i])], distance);
        }
    } else {
        const std::vector<WeightReader::Atom>& atoms = reader_of(s_.reads[r].buffer, place.index).atoms;
        std::int64_t distance = 1;
        for (std::size_t i = atoms.size() - 1; i-- > 0; distance *= atoms[i].extent) dimensions.emplace_back(atoms[i].index, distance);
    }
    std::int64_t stride = 0;
    for (std::size_t d = 0; d < dimensions.size(); ++d)
        for (const auto& [atom, k] : linear(dimensions[d].first).terms)
            if (atom.uses(var)) {
                if (atom.kind() != Index::Kind::variable) return {};
                stride += (packed == d ? k / in_word_ : k) * dimensions[d].second;
            }
    return stride;
}

NestOperands::Spot NestOperands::word(const TreeNode& body, std::size_t r) const {
    const OperandPlace& place = body.reads[r];
    if (place.stage < 0) return {buffers_[static_cast<std::size_t>(s_.reads[r].buffer)], {visited(s_.reads[r].buffer, place.index)}};
    const Storage& st = *storages_[static_cast<std::size_t>(place.stage)];
    return {st.buffer, physical(st, exprs(place.index))};
}

Expr NestOperands::word_address(const TreeNode& body, std::size_t r) const {
    const Spot at = word(body, r);
    return at.buffer.address(at.at);
}

Expr NestOperands::int8_scale(Int8Tail part, const Expr& channel, std::int64_t lanes) const {
    const bool of_channel = part == Int8Tail::factors || part == Int8Tail::offsets;
    const std::int64_t begin = int8_.begin + (part == Int8Tail::factors ? 0 : int8_.channels) + (of_channel ? 0 : int8_.channels) + (part == Int8Tail::zero);
    return buffers_[static_cast<std::size_t>(int8_.weights)].load({tv::run_of(channel + Expr(begin), lanes)});
}

// The statement's last step, for the element at a logical index that holds `acc`.
Expr NestOperands::finished(const Expr& acc, const std::vector<Index>& logical) {
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

Expr NestOperands::combined(const Expr& a, const Expr& b) const {
    if (s_.combine != Combine::max) return tv::binary(tv::Fn::add, a, b);
    return larger(a, b);
}

Expr NestOperands::entry(const Coefficient& c, const TreeNode& body) const {
    const Expr row = expr(body.iterators[static_cast<std::size_t>(c.row)]), column = expr(body.iterators[static_cast<std::size_t>(c.column)]);
    if (row.constant && column.constant) return tv::float_value(c.at(row.value, column.value));
    const auto columns = static_cast<std::int64_t>(c.values[0].size());
    Expr found = tv::float_value(0);
    const Expr flat = row * Expr(columns) + column;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.values.size()) * columns; ++i)
        if (const double v = c.at(i / columns, i % columns); v != 0) found = tv::select(both(less(flat, i + 1), at_least(flat, i)), tv::float_value(v), found);
    return found;
}

Expr NestOperands::weighted(const std::vector<double>& coefficients, const std::function<Expr(std::int64_t)>& term) {
    std::optional<Expr> sum;
    for (std::size_t k = 0; k < coefficients.size(); ++k) {
        const double c = coefficients[k];
        if (c == 0) continue;
        const Expr x = term(static_cast<std::int64_t>(k));
        if (!sum)
            sum = c == 1 ? x : tv::binary(tv::Fn::mul, x, tv::float_value(c));
        else if (c == 1 || c == -1)
            sum = tv::binary(c == 1 ? tv::Fn::add : tv::Fn::sub, *sum, x);
        else
            sum = tv::binary(tv::Fn::add, *sum, tv::binary(tv::Fn::mul, x, tv::float_value(c)));
    }
    return sum ? *sum : tv::float_value(0);
}

Expr NestOperands::outside() const { return constant(s_.outside, gpu_); }
Expr NestOperands::identity() const { return constant(s_.identity(), gpu_); }

}  // namespace loopegg
