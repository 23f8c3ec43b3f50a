#include "fisher/libtorch/restricted.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"
#include "graph/flops.hpp"
#include "graph/operators.hpp"

#include <ATen/ATen.h>

namespace loopegg {
namespace {

// Puts the results of a restricted operation in their places: the computed pieces and the restored values.

// Which output elements a piece computes: a product of values, one list for each output axis.
using OutputSet = std::vector<std::vector<std::int64_t>>;

class OutputAssembly {
public:
    // `extents` are those of the output axes without any leading batch. `channels` says which of these axes a bias runs over. `sources` are as
    // output_sources gives them for these axes. Places may overlap, and the values that several pieces give for one output are added.
    OutputAssembly(std::vector<std::int64_t> extents, std::size_t channels, std::vector<OutputSet> places, const std::vector<std::int64_t>& sources);

    // Turns one tensor for each place, each [batch, values of the axes...], into [batch, extents...]. A bias (undefined: none) is added to the
    // computed elements, before others are restored from them.
    at::Tensor assemble(const std::vector<at::Tensor>& pieces, const at::Tensor& bias) const;

private:
    bool try_product(const std::vector<std::int64_t>& sources);

    std::vector<std::int64_t> extents_;
    std::size_t channels_;
    std::vector<OutputSet> places_;
    // Where the places tile a product of lists along one axis: join there, then pick along each axis.
    bool product_ = false;
    std::int64_t join_axis_ = 0;
    std::vector<at::Tensor> pick_;  // one for each axis; undefined: the axis stays as it is
    at::Tensor bias_channels_;      // of the joined tensor; undefined: all
    // Otherwise: add each piece at its flat places, then gather.
    std::vector<at::Tensor> flat_;  // one for each place
    at::Tensor computed_;           // 1 where some piece adds a value, 0 elsewhere
    at::Tensor gather_, keep_;      // undefined: nothing is gathered, or all is kept
};

using Values = std::vector<std::int64_t>;

at::Tensor index_tensor(const Values& values) { return at::tensor(at::ArrayRef<std::int64_t>(values), at::kLong); }

bool is_iota(const Values& values, std::int64_t extent) {
    if (static_cast<std::int64_t>(values.size()) != extent) return false;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != static_cast<std::int64_t>(i)) return false;
    return true;
}

std::int64_t product(const Values& values) { return std::accumulate(values.begin(), values.end(), std::int64_t{1}, std::multiplies<>()); }

// Flat row-major places of a product of values.
Values flat_places(const OutputSet& set, const Values& extents) {
    Values flat{0};
    for (std::size_t axis = 0; axis < set.size(); ++axis) {
        Values wider;
        wider.reserve(flat.size() * set[axis].size());
        for (std::int64_t f : flat)
            for (std::int64_t v : set[axis]) wider.push_back(f * extents[axis] + v);
        flat = std::move(wider);
    }
    return flat;
}

OutputAssembly::OutputAssembly(std::vector<std::int64_t> extents, std::size_t channels, std::vector<OutputSet> places, const std::vector<std::int64_t>& sources)
    : extents_(std::move(extents)), channels_(channels), places_(std::move(places)) {
    require(!places_.empty(), "a restricted operation computes something");
    product_ = try_product(sources);
    if (product_) return;
    std::vector<float> computed(sources.size(), 0.0f);
    for (const OutputSet& set : places_) {
        Values flat = flat_places(set, extents_);
        for (std::int64_t i : flat) computed[static_cast<std::size_t>(i)] = 1.0f;
        flat_.push_back(index_tensor(flat));
    }
    computed_ = at::tensor(at::ArrayRef<float>(computed));
    bool own = true, zeros = false;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        own &= sources[i] < 0 || sources[i] == static_cast<std::int64_t>(i);
        zeros |= sources[i] < 0;
    }
    if (own) return;  // an element to which no piece adds stays zero
    Values from = sources;
    std::vector<float> keep(sources.size(), 1.0f);
    for (std::size_t i = 0; i < from.size(); ++i)
        if (from[i] < 0) from[i] = 0, keep[i] = 0.0f;
    gather_ = index_tensor(from);
    if (zeros) keep_ = at::tensor(at::ArrayRef<float>(keep));
}

bool OutputAssembly::try_product(const std::vector<std::int64_t>& sources) {
    std::size_t rank = extents_.size(), join = rank;
    for (std::size_t axis = 0; axis < rank; ++axis)
        for (const OutputSet& set : places_)
            if (set[axis] != places_[0][axis]) {
                if (join != rank && join != axis) return false;
                join = axis;
            }
    OutputSet lists = places_[0];
    if (join != rank) {
        lists[join].clear();
        for (const OutputSet& set : places_) lists[join].insert(lists[join].end(), set[join].begin(), set[join].end());
        Values sorted = lists[join];
        std::sort(sorted.begin(), sorted.end());
        if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return false;  // places overlap
    }
    // The map from outputs to sources must be a product of one map for each axis, and every source must be in the lists.
    std::vector<Values> maps(rank);
    std::int64_t inner = product(extents_);
    for (std::size_t axis = 0; axis < rank; ++axis) {
        inner /= extents_[axis];
        std::vector<std::int64_t> place_in_list(static_cast<std::size_t>(extents_[axis]), -1);
        for (std::size_t i = 0; i < lists[axis].size(); ++i) place_in_list[static_cast<std::size_t>(lists[axis][i])] = static_cast<std::int64_t>(i);
        for (std::int64_t v = 0; v < extents_[axis]; ++v) {
            std::int64_t source = sources[static_cast<std::size_t>(v * inner)];
            if (source < 0) return false;
            std::int64_t digit = source / inner % extents_[axis];
            if (place_in_list[static_cast<std::size_t>(digit)] < 0) return false;
            maps[axis].push_back(digit);
        }
        Values picked;
        for (std::int64_t digit : maps[axis]) picked.push_back(place_in_list[static_cast<std::size_t>(digit)]);
        pick_.push_back(is_iota(picked, static_cast<std::int64_t>(lists[axis].size())) ? at::Tensor() : index_tensor(picked));
    }
    Values expected = flat_places(maps, extents_);
    if (!std::equal(expected.begin(), expected.end(), sources.begin(), sources.end())) {
        pick_.clear();
        return false;
    }
    join_axis_ = static_cast<std::int64_t>(join == rank ? 0 : join);
    if (!is_iota(lists[channels_], extents_[channels_])) bias_channels_ = index_tensor(lists[channels_]);
    return true;
}

at::Tensor OutputAssembly::assemble(const std::vector<at::Tensor>& pieces, const at::Tensor& bias) const {
    Values along(extents_.size() + 1, 1);
    along[channels_ + 1] = -1;
    if (product_) {
        at::Tensor y = pieces.size() == 1 ? pieces[0] : at::cat(pieces, join_axis_ + 1);
        if (bias.defined()) y = y + (bias_channels_.defined() ? bias.index_select(0, bias_channels_.to(bias.device())) : bias).view(along);
        for (std::size_t axis = 0; axis < pick_.size(); ++axis)
            if (pick_[axis].defined()) y = y.index_select(static_cast<std::int64_t>(axis) + 1, pick_[axis].to(y.device()));
        return y;
    }
    std::int64_t batch = pieces[0].size(0);
    at::Tensor y = at::zeros({batch, product(extents_)}, pieces[0].options());
    for (std::size_t i = 0; i < pieces.size(); ++i) y = y.index_add(1, flat_[i].to(y.device()), pieces[i].flatten(1));
    if (bias.defined()) {
        Values shape = extents_;
        y = y + bias.view(Values(along.begin() + 1, along.end())).expand(shape).reshape({1, -1}) * computed_.to(y.options());
    }
    if (gather_.defined()) y = y.index_select(1, gather_.to(y.device()));
    if (keep_.defined()) y = y * keep_.to(y.options());
    Values shape{batch};
    shape.insert(shape.end(), extents_.begin(), extents_.end());
    return y.view(shape);
}

using Values = std::vector<std::int64_t>;

constexpr std::size_t max_pieces = 12;  // with more pieces, launching them costs more than multiplying by zeros

bool contiguous(const Values& v) { return v.back() - v.front() + 1 == static_cast<std::int64_t>(v.size()) && std::is_sorted(v.begin(), v.end()); }

// x restricted to some values of one dimension.
at::Tensor pick(const at::Tensor& x, std::int64_t dim, const Values& values) {
    if (static_cast<std::int64_t>(values.size()) == x.size(dim) && contiguous(values)) return x;
    if (contiguous(values)) return x.narrow(dim, values.front(), static_cast<std::int64_t>(values.size()));
    return x.index_select(dim, index_tensor(values).to(x.device()));
}

// One convolution over a slice: channels by value (absolute), the rest as runs.
struct ConvPiece {
    Values co, ci;  // with groups: the blocks one after another
    StridedRun oh, ow, kh, kw;
    std::int64_t groups = 1;
    std::size_t part = 0;
};

bool disjoint(const std::vector<const Values*>& sets) {
    Values all;
    for (const Values* s : sets) all.insert(all.end(), s->begin(), s->end());
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) == all.end();
}

// Pieces that differ in channels alone, with disjoint blocks of equal size, become one convolution with groups.
std::vector<ConvPiece> join_diagonals(const std::vector<ConvPiece>& pieces) {
    std::vector<ConvPiece> out;
    std::vector<char> used(pieces.size(), 0);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (used[i]) continue;
        const ConvPiece& a = pieces[i];
        std::vector<std::size_t> same;
        for (std::size_t j = i; j < pieces.size(); ++j) {
            const ConvPiece& b = pieces[j];
            if (!used[j] && a.part == b.part && a.oh == b.oh && a.ow == b.ow && a.kh == b.kh && a.kw == b.kw && a.co.size() == b.co.size() &&
                a.ci.size() == b.ci.size())
                same.push_back(j);
        }
        std::vector<const Values*> outs, ins;
        for (std::size_t j : same) outs.push_back(&pieces[j].co), ins.push_back(&pieces[j].ci);
        if (same.size() < 2 || !disjoint(outs) || !disjoint(ins)) {
            used[i] = 1;
            out.push_back(a);
            continue;
        }
        ConvPiece joined = a;
        joined.co.clear(), joined.ci.clear();
        joined.groups = static_cast<std::int64_t>(same.size());
        for (std::size_t j : same) {
            used[j] = 1;
            joined.co.insert(joined.co.end(), pieces[j].co.begin(), pieces[j].co.end());
            joined.ci.insert(joined.ci.end(), pieces[j].ci.begin(), pieces[j].ci.end());
        }
        out.push_back(std::move(joined));
    }
    return out;
}

class RestrictedConv final : public RestrictedOperation {
public:
    explicit RestrictedConv(const Node& node)
        : stride_(node.integers("stride")),
          padding_(node.integers("padding")),
          dilation_(node.integers("dilation")),
          kernel_(node.integers("kernel")),
          groups_(node.integer("groups")),
          size_{node.input_shapes[0][2], node.input_shapes[0][3]} {
        std::vector<Axis> axes = axes_of(node);
        for (const Axis& axis : axes_named_by(node.domain, axes)) require(axis.name != "n", "a domain that restricts the batch");
        axes.erase(axes.begin());  // n
        std::int64_t co = axes[1].extent, ci = axes[2].extent;
        std::vector<ConvPiece> pieces = join_diagonals(cut(node.domain, axes, co, ci));
        Values extents{node.shape[1], node.shape[2], node.shape[3]};
        bool spatial = false;
        for (const Axis& axis : axes_named_by(node.domain, axes)) spatial |= axis.name == "oh" || axis.name == "ow";
        if (!spatial && pieces.size() > max_pieces) {
            mask(node, extents, axes);
            return;
        }
        std::vector<OutputSet> places;
        for (ConvPiece& p : pieces) {
            OutputSet place{p.co, values_of(p.oh), values_of(p.ow)};
            auto found = std::find(places.begin(), places.end(), place);
            place_of_.push_back(static_cast<std::size_t>(found - places.begin()));
            if (found == places.end()) places.push_back(std::move(place));
            weight_index_.push_back(weight_index(p, ci, co));
        }
        pieces_ = std::move(pieces);
        places_ = places.size();
        assembly_.emplace(extents, 0, std::move(places), output_sources(node.domain, axes));
    }

    at::Tensor run(const std::vector<at::Tensor>& inputs, const at::Tensor& weight, const at::Tensor& bias) const override {
        const at::Tensor& x = inputs[0];
        if (mask_.defined()) {
            at::Tensor y = at::conv2d(x, weight * mask_.to(weight.options()), {}, stride_, padding_, dilation_, groups_);
            return assembly_->assemble({pick(y, 1, masked_channels_)}, bias);
        }
        std::vector<at::Tensor> results(places_);
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            at::Tensor y = run_piece(pieces_[i], x, weight, weight_index_[i]);
            at::Tensor& place = results[place_of_[i]];
            place = place.defined() ? place + y : y;
        }
        return assembly_->assemble(results, bias);
    }

private:
    static Values values_of(const StridedRun& run) {
        Values v;
        for (std::int64_t i = 0; i < run.count; ++i) v.push_back(run.lo + i * run.stride);
        return v;
    }

    // axes: g co ci oh ow kh kw
    static std::vector<ConvPiece> cut(const Domain& domain, const std::vector<Axis>& axes, std::int64_t co, std::int64_t ci) {
        std::vector<ConvPiece> pieces;
        for (const ProductSet& set : product_sets(domain, axes)) {
            std::vector<StridedRun> oh = as_runs(set.values[3]), ow = as_runs(set.values[4]), kh = as_runs(set.values[5]), kw = as_runs(set.values[6]);
            for (std::int64_t g : set.values[0]) {
                ConvPiece piece;
                piece.part = set.part;
                for (std::int64_t v : set.values[1]) piece.co.push_back(g * co + v);
                for (std::int64_t v : set.values[2]) piece.ci.push_back(g * ci + v);
                for (const StridedRun& a : oh)
                    for (const StridedRun& b : ow)
                        for (const StridedRun& c : kh)
                            for (const StridedRun& d : kw) {
                                piece.oh = a, piece.ow = b, piece.kh = c, piece.kw = d;
                                pieces.push_back(piece);
                            }
            }
        }
        return pieces;
    }

    // Runs the whole convolution, with weights outside the domain set to zero. The domain does not name the spatial axes, so either all outputs of a
    // channel are computed or none.
    void mask(const Node& node, const Values& extents, const std::vector<Axis>& axes) {
        std::vector<char> used = weight_mask(node);
        std::vector<float> factors(used.begin(), used.end());
        mask_ = at::tensor(at::ArrayRef<float>(factors)).view({node.shape[1], node.input_shapes[0][1] / groups_, kernel_[0], kernel_[1]});
        std::vector<char> computed = projection(node.domain, axes, {"g", "co"});
        Values channels, rows(static_cast<std::size_t>(extents[1])), columns(static_cast<std::size_t>(extents[2]));
        for (std::size_t c = 0; c < computed.size(); ++c)
            if (computed[c]) channels.push_back(static_cast<std::int64_t>(c));
        std::iota(rows.begin(), rows.end(), 0);
        std::iota(columns.begin(), columns.end(), 0);
        masked_channels_ = channels;
        assembly_.emplace(extents, 0, std::vector<OutputSet>{{channels, rows, columns}}, output_sources(node.domain, axes));
    }

    // Flat places of the piece's weights in the node's weights; undefined where plain slices suffice.
    at::Tensor weight_index(const ConvPiece& p, std::int64_t ci_per_group, std::int64_t co_per_group) const {
        if (p.groups == 1 && groups_ == 1 && contiguous(p.co) && contiguous(p.ci)) return {};
        std::size_t outs = p.co.size() / static_cast<std::size_t>(p.groups), ins = p.ci.size() / static_cast<std::size_t>(p.groups);
        Values flat;
        flat.reserve(p.co.size() * ins * static_cast<std::size_t>(p.kh.count * p.kw.count));
        for (std::size_t o = 0; o < p.co.size(); ++o)
            for (std::size_t i = 0; i < ins; ++i) {
                std::int64_t in = p.ci[o / outs * ins + i];
                require(in / ci_per_group == p.co[o] / co_per_group, "a piece reads a weight of its own group");
                std::int64_t row = p.co[o] * ci_per_group + in % ci_per_group;
                for (std::int64_t h = 0; h < p.kh.count; ++h)
                    for (std::int64_t w = 0; w < p.kw.count; ++w)
                        flat.push_back((row * kernel_[0] + p.kh.lo + h * p.kh.stride) * kernel_[1] + p.kw.lo + w * p.kw.stride);
            }
        return index_tensor(flat);
    }

    // The part of one spatial dimension that a piece reads: a slice of the input and the zeros around it. A window that is wholly in the
    // padding has no slice.
    struct Window {
        std::int64_t lo, count, before, after;
    };
    Window window(std::size_t d, const StridedRun& out, const StridedRun& kernel) const {
        std::int64_t first = stride_[d] * out.lo + dilation_[d] * kernel.lo - padding_[d];
        std::int64_t last = first + (out.count - 1) * stride_[d] * out.stride + (kernel.count - 1) * dilation_[d] * kernel.stride;
        if (first >= size_[d] || last < 0) return {0, 0, last - first + 1, 0};
        std::int64_t lo = std::max<std::int64_t>(first, 0), hi = std::min(last, size_[d] - 1);
        return {lo, hi - lo + 1, lo - first, last - hi};
    }

    at::Tensor run_piece(const ConvPiece& p, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& index) const {
        at::Tensor w;
        if (index.defined()) {
            std::int64_t ins = static_cast<std::int64_t>(p.ci.size()) / p.groups;
            w = weight.reshape({-1}).index_select(0, index.to(weight.device())).view({static_cast<std::int64_t>(p.co.size()), ins, p.kh.count, p.kw.count});
        } else {
            w = pick(pick(weight, 0, p.co), 1, p.ci);
            if (p.kh.count != kernel_[0]) w = w.slice(2, p.kh.lo, p.kh.lo + (p.kh.count - 1) * p.kh.stride + 1, p.kh.stride);
            if (p.kw.count != kernel_[1]) w = w.slice(3, p.kw.lo, p.kw.lo + (p.kw.count - 1) * p.kw.stride + 1, p.kw.stride);
        }
        at::Tensor in = pick(x, 1, p.ci);
        Values strides{stride_[0] * p.oh.stride, stride_[1] * p.ow.stride};
        Values dilations{dilation_[0] * p.kh.stride, dilation_[1] * p.kw.stride};
        if (own_padding(0, p.oh, p.kh) && own_padding(1, p.ow, p.kw)) return at::conv2d(in, w, {}, strides, padding_, dilations, p.groups);
        Window rows = window(0, p.oh, p.kh), columns = window(1, p.ow, p.kw);
        in = in.narrow(2, rows.lo, rows.count).narrow(3, columns.lo, columns.count);
        if (rows.before || rows.after || columns.before || columns.after)
            in = at::constant_pad_nd(in, {columns.before, columns.after, rows.before, rows.after});
        return at::conv2d(in, w, {}, strides, Values{0, 0}, dilations, p.groups);
    }

    // Whether the convolution's own padding gives exactly these outputs.
    bool own_padding(std::size_t d, const StridedRun& out, const StridedRun& kernel) const {
        if (out.lo != 0 || kernel.lo != 0 || kernel.count != kernel_[d]) return false;
        std::int64_t reach = dilation_[d] * (kernel_[d] - 1) + 1;
        return (size_[d] + 2 * padding_[d] - reach) / (stride_[d] * out.stride) + 1 == out.count;
    }

    Values stride_, padding_, dilation_, kernel_;
    std::int64_t groups_;
    std::array<std::int64_t, 2> size_;
    std::vector<ConvPiece> pieces_;
    std::vector<std::size_t> place_of_;     // of each piece
    std::vector<at::Tensor> weight_index_;  // of each piece
    Values masked_channels_;                // the computed channels, of a convolution that runs masked
    std::size_t places_ = 0;
    at::Tensor mask_;
    std::optional<OutputAssembly> assembly_;
};

// linear (n co ci) and matmul (b i j k): every product is a small matrix product.
class RestrictedProduct final : public RestrictedOperation {
public:
    explicit RestrictedProduct(const Node& node) : linear_(node.op == "linear"), shape_(node.shape) {
        std::vector<Axis> axes = axes_of(node);
        sets_ = product_sets(node.domain, axes);
        std::vector<OutputSet> places;
        for (const ProductSet& set : sets_) {
            OutputSet place(set.values.begin(), set.values.end() - 1);
            auto found = std::find(places.begin(), places.end(), place);
            place_of_.push_back(static_cast<std::size_t>(found - places.begin()));
            if (found == places.end()) places.push_back(std::move(place));
        }
        places_ = places.size();
        Values extents;
        for (const Axis& axis : axes)
            if (!axis.reduction) extents.push_back(axis.extent);
        assembly_.emplace(extents, 1, std::move(places), output_sources(node.domain, axes));
    }

    at::Tensor run(const std::vector<at::Tensor>& inputs, const at::Tensor& weight, const at::Tensor& bias) const override {
        std::vector<at::Tensor> results(places_);
        at::Tensor a = inputs[0], b = linear_ ? weight : inputs[1];
        a = linear_ ? a.reshape({-1, a.size(-1)}) : a.reshape({-1, a.size(-2), a.size(-1)});
        if (!linear_) b = b.reshape({-1, b.size(-2), b.size(-1)});
        for (std::size_t i = 0; i < sets_.size(); ++i) {
            const auto& v = sets_[i].values;
            at::Tensor y = linear_ ? at::matmul(pick(pick(a, 0, v[0]), 1, v[2]), pick(pick(b, 0, v[1]), 1, v[2]).t())
                                   : at::matmul(pick(pick(pick(a, 0, v[0]), 1, v[1]), 2, v[3]), pick(pick(pick(b, 0, v[0]), 1, v[3]), 2, v[2]));
            at::Tensor& place = results[place_of_[i]];
            place = place.defined() ? place + y : y;
        }
        for (at::Tensor& r : results) r = r.unsqueeze(0);
        return assembly_->assemble(results, bias).view(shape_);
    }

private:
    bool linear_;
    Shape shape_;
    std::vector<ProductSet> sets_;
    std::vector<std::size_t> place_of_;
    std::size_t places_ = 0;
    std::optional<OutputAssembly> assembly_;
};

}  // namespace

std::shared_ptr<const RestrictedOperation> plan_restricted(const Node& node) {
    if (node.op == "conv2d") return std::make_shared<RestrictedConv>(node);
    require(node.op == "linear" || node.op == "matmul", "only compute sites have domains");
    return std::make_shared<RestrictedProduct>(node);
}

}  // namespace loopegg
