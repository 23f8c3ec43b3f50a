#include "fisher/libtorch/restricted_output.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace loopegg {
namespace {

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

}  // namespace

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
    // The map from outputs to sources must be a product of one map for each axis, and every source must lie in the lists.
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

}  // namespace loopegg
