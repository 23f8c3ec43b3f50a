// Reductions over axes, and what normalises along them.
#include <algorithm>
#include <map>
#include <numeric>

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg::onnx_eval {
namespace {

double reduced(const std::string& op, const std::vector<double>& v) {
    const auto n = static_cast<double>(v.size());
    double sum = 0, product = 1, absolute = 0, square = 0, most = -INFINITY, least = INFINITY;
    for (double x : v)
        sum += x, product *= x, absolute += std::abs(x), square += x * x, most = std::isnan(x) ? x : std::max(most, x),
                                                                          least = std::isnan(x) ? x : std::min(least, x);
    if (op == "ReduceSum") return sum;
    if (op == "ReduceMean") return sum / n;
    if (op == "ReduceProd") return product;
    if (op == "ReduceMax") return most;
    if (op == "ReduceMin") return least;
    if (op == "ReduceL1") return absolute;
    if (op == "ReduceL2") return std::sqrt(square);
    if (op == "ReduceSumSquare") return square;
    if (op == "ReduceLogSum") return std::log(sum);
    if (!std::isfinite(most)) return v.empty() ? -INFINITY : most;
    double shifted = 0;  // ReduceLogSumExp
    for (double x : v) shifted += std::exp(x - most);
    return most + std::log(shifted);
}

Outputs reduce(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    Ints axes = axes_of(node, in, 1);
    std::vector<bool> gone(x.dims.size(), axes.empty() && attr_int(node, "noop_with_empty_axes", 0) == 0);  // squares and logarithms remain
    for (std::int64_t a : axes) gone[at(placed_axis(a, rank_of(x)))] = true;
    const bool keep = attr_int(node, "keepdims", 1) != 0;
    Ints dims, outer, outer_strides, inner, inner_strides;
    const Ints strides = strides_of(x.dims);
    for (std::size_t d = 0; d < x.dims.size(); ++d) {
        if (gone[d])
            inner.push_back(x.dims[d]), inner_strides.push_back(strides[d]);
        else
            outer.push_back(x.dims[d]), outer_strides.push_back(strides[d]);
        if (!gone[d] || keep) dims.push_back(gone[d] ? 1 : x.dims[d]);
    }
    Ints offsets;
    each(inner, {inner_strides}, [&](std::size_t, const Ints& o) { offsets.push_back(o[0]); });
    OnnxTensor y = make(element_type(x), dims);
    const bool whole_numbers = x.kind == Kind::int64 && (node.op == "ReduceSum" || node.op == "ReduceMax" || node.op == "ReduceMin" || node.op == "ReduceProd");
    if (offsets.empty() && x.kind == Kind::int64 && (node.op == "ReduceMax" || node.op == "ReduceMin")) problem("the extreme of nothing");
    std::vector<double> values(offsets.size());
    each(outer, {outer_strides}, [&](std::size_t i, const Ints& o) {
        if (whole_numbers) {
            std::int64_t acc = node.op == "ReduceProd" ? 1 : node.op == "ReduceSum" ? 0 : x.integers[at(o[0] + offsets[0])];
            for (std::int64_t p : offsets) {
                const std::int64_t v = x.integers[at(o[0] + p)];
                acc = node.op == "ReduceSum"    ? static_cast<std::int64_t>(static_cast<std::uint64_t>(acc) + static_cast<std::uint64_t>(v))
                      : node.op == "ReduceProd" ? static_cast<std::int64_t>(static_cast<std::uint64_t>(acc) * static_cast<std::uint64_t>(v))
                      : node.op == "ReduceMax"  ? std::max(acc, v)
                                                : std::min(acc, v);
            }
            y.integers[i] = acc;
            return;
        }
        for (std::size_t k = 0; k < offsets.size(); ++k) values[k] = number(x, at(o[0] + offsets[k]));
        set(y, i, reduced(node.op, values));
    });
    return {y};
}

// Calls visit with the offsets of every line along an axis (of several axes from `axis` on, when flat).
template <class Visit>
void lines(const OnnxTensor& x, std::int64_t axis, bool flat, Visit visit) {
    std::int64_t n = 1, inner = 1;
    for (std::int64_t d = axis; d < rank_of(x); ++d) (d == axis || flat ? n : inner) *= x.dims[at(d)];
    const auto all = static_cast<std::int64_t>(size_of(x));
    Ints offsets(at(n));
    for (std::int64_t line = 0; n && line < all / n; ++line) {
        for (std::int64_t k = 0; k < n; ++k) offsets[at(k)] = line / inner * inner * n + line % inner + k * inner;
        visit(offsets);
    }
}

Outputs softmax(const OnnxNode& node, Inputs in, std::int64_t opset) {
    const OnnxTensor& x = need(in, 0);
    const bool flat = opset < 13;  // then all axes from there on are one
    const std::int64_t axis = placed_axis(attr_int(node, "axis", flat ? 1 : -1), rank_of(x));
    OnnxTensor y = make(element_type(x), x.dims);
    lines(x, axis, flat, [&](const Ints& o) {
        double most = o.empty() ? 0 : number(x, at(o[0])), sum = 0;
        std::size_t hot = 0;
        for (std::size_t k = 1; k < o.size(); ++k)
            if (number(x, at(o[k])) > most) most = number(x, at(o[k])), hot = k;
        for (std::int64_t p : o) sum += std::exp(number(x, at(p)) - most);
        for (std::size_t k = 0; k < o.size(); ++k) {
            const double v = number(x, at(o[k])) - most;
            set(y, at(o[k]), node.op == "Hardmax" ? k == hot && !std::isnan(most) : node.op == "LogSoftmax" ? v - std::log(sum) : std::exp(v) / sum);
        }
    });
    return {y};
}

// What a line was normalised by.
struct Moments {
    double mean = 0, inverse = 0;  // inverse: one over the standard deviation
};

Moments normalise(const OnnxTensor& x, OnnxTensor& y, const Ints& o, double eps, const std::function<double(double, std::size_t)>& finish) {
    double mean = 0, variance = 0;
    for (std::int64_t p : o) mean += number(x, at(p));
    mean /= static_cast<double>(o.size());
    for (std::int64_t p : o) variance += (number(x, at(p)) - mean) * (number(x, at(p)) - mean);
    const double inverse = 1 / std::sqrt(variance / static_cast<double>(o.size()) + eps);
    for (std::size_t k = 0; k < o.size(); ++k) set(y, at(o[k]), finish((number(x, at(o[k])) - mean) * inverse, k));
    return {mean, inverse};
}

Outputs layer_norm(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &scale = need(in, 1);
    const OnnxTensor* bias = maybe(in, 2);
    const std::int64_t axis = placed_axis(attr_int(node, "axis", -1), rank_of(x));
    const Ints tail(x.dims.begin() + axis, x.dims.end());
    auto stretched = [&](const OnnxTensor& t) {
        return broadcast(t.dims, tail) == tail ? broadcast_strides(t.dims, tail) : (problem("its scale does not fit"), Ints{});
    };
    std::vector<Ints> places;
    each(tail, {stretched(scale), bias ? stretched(*bias) : Ints(tail.size(), 0)}, [&](std::size_t, const Ints& o) { places.push_back(o); });
    OnnxTensor y = make(element_type(x), x.dims);
    Ints stat(x.dims.begin(), x.dims.begin() + axis);
    stat.resize(x.dims.size(), 1);
    OnnxTensor means = make(float32, stat), inverses = make(float32, stat);
    std::size_t line = 0;
    lines(x, axis, true, [&](const Ints& o) {
        Moments m;
        auto finish = [&](double v, std::size_t k) { return v * number(scale, at(places[k][0])) + (bias ? number(*bias, at(places[k][1])) : 0); };
        if (node.op == "RMSNormalization" || node.op == "SimplifiedLayerNormalization") {
            double square = 0;
            for (std::int64_t p : o) square += number(x, at(p)) * number(x, at(p));
            m.inverse = 1 / std::sqrt(square / static_cast<double>(o.size()) + attr_float(node, "epsilon", 1e-5));
            for (std::size_t k = 0; k < o.size(); ++k) set(y, at(o[k]), finish(number(x, at(o[k])) * m.inverse, k));
        } else {
            m = normalise(x, y, o, attr_float(node, "epsilon", 1e-5), finish);
        }
        set(means, line, m.mean), set(inverses, line++, m.inverse);
    });
    Outputs all{y, means, inverses};
    all.resize(std::min<std::size_t>(all.size(), std::max<std::size_t>(1, node.outputs.size())));
    return all;
}

Outputs group_norm(const OnnxNode& node, Inputs in, std::int64_t opset) {
    const OnnxTensor &x = need(in, 0), &scale = need(in, 1), &bias = need(in, 2);
    if (x.dims.size() < 2) problem("channels are expected in the second dimension");
    const std::int64_t channels = x.dims[1], groups = node.op == "InstanceNormalization" ? channels : attr_int(node, "num_groups", 1);
    const bool by_group = node.op == "GroupNormalization" && opset < 21;
    if (groups < 1 || channels % groups || size_of(scale) != at(by_group ? groups : channels) || size_of(bias) != size_of(scale))
        problem("its groups or its scale do not fit to the channels");
    std::int64_t inner = 1;
    for (std::size_t d = 2; d < x.dims.size(); ++d) inner *= x.dims[d];
    OnnxTensor y = make(element_type(x), x.dims);
    const std::int64_t width = channels / groups * inner;
    Ints o(at(width));
    for (std::int64_t line = 0; line < x.dims[0] * groups; ++line) {
        std::iota(o.begin(), o.end(), line * width);
        normalise(x, y, o, attr_float(node, "epsilon", 1e-5), [&](double v, std::size_t k) {
            const std::int64_t group = line % groups, c = by_group ? group : group * (channels / groups) + static_cast<std::int64_t>(k) / inner;
            return v * number(scale, at(c)) + number(bias, at(c));
        });
    }
    return {y};
}

Outputs batch_norm(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &scale = need(in, 1), &bias = need(in, 2), &mean = need(in, 3), &variance = need(in, 4);
    if (attr_int(node, "training_mode", 0) != 0 || node.outputs.size() > 1) problem("batch normalization in training mode");
    if (x.dims.size() < 2 || size_of(scale) != at(x.dims[1])) problem("its scale does not fit to the channels");
    std::int64_t inner = 1;
    for (std::size_t d = 2; d < x.dims.size(); ++d) inner *= x.dims[d];
    OnnxTensor y = make(element_type(x), x.dims);
    for (std::size_t i = 0, n = size_of(x); i < n; ++i) {
        const std::size_t c = i / at(inner) % at(x.dims[1]);
        set(y, i, (number(x, i) - number(mean, c)) / std::sqrt(number(variance, c) + attr_float(node, "epsilon", 1e-5)) * number(scale, c) + number(bias, c));
    }
    return {y};
}

Outputs lp_norm(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const std::int64_t p = attr_int(node, "p", 2);
    if (p != 1 && p != 2) problem("a norm of order 1 or 2 is expected");
    OnnxTensor y = make(element_type(x), x.dims);
    lines(x, placed_axis(attr_int(node, "axis", -1), rank_of(x)), false, [&](const Ints& o) {
        double sum = 0;
        for (std::int64_t k : o) sum += p == 1 ? std::abs(number(x, at(k))) : number(x, at(k)) * number(x, at(k));
        const double norm = p == 1 ? sum : std::sqrt(sum);
        for (std::int64_t k : o) set(y, at(k), norm == 0 ? 0 : number(x, at(k)) / norm);
    });
    return {y};
}

Outputs mean_variance(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const Ints axes = attr_ints(node, "axes").value_or(Ints{0, 2, 3});
    std::vector<bool> gone(x.dims.size(), false);
    for (std::int64_t a : axes) gone[at(placed_axis(a, rank_of(x)))] = true;
    Ints outer, outer_strides, inner, inner_strides, offsets;
    const Ints strides = strides_of(x.dims);
    for (std::size_t d = 0; d < x.dims.size(); ++d)
        (gone[d] ? inner : outer).push_back(x.dims[d]), (gone[d] ? inner_strides : outer_strides).push_back(strides[d]);
    each(inner, {inner_strides}, [&](std::size_t, const Ints& o) { offsets.push_back(o[0]); });
    OnnxTensor y = make(element_type(x), x.dims);
    each(outer, {outer_strides}, [&](std::size_t, const Ints& at_line) {
        Ints o = offsets;
        for (std::int64_t& p : o) p += at_line[0];
        normalise(x, y, o, 1e-18, [](double v, std::size_t) { return v; });
    });
    return {y};
}

Outputs cum_sum(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const std::int64_t axis = placed_axis(whole(need(in, 1), 0), rank_of(x));
    const bool before = attr_int(node, "exclusive", 0) != 0, backwards = attr_int(node, "reverse", 0) != 0;
    OnnxTensor y = make(element_type(x), x.dims);
    lines(x, axis, false, [&](Ints o) {
        if (backwards) std::reverse(o.begin(), o.end());
        double sum = 0;
        for (std::int64_t p : o) {
            const double v = number(x, at(p));
            set(y, at(p), before ? sum : sum + v);
            sum += v;
        }
    });
    return {y};
}

Outputs lrn(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const std::int64_t size = attr_int(node, "size", 1);
    const double alpha = attr_float(node, "alpha", 1e-4), beta = attr_float(node, "beta", 0.75), bias = attr_float(node, "bias", 1);
    if (x.dims.size() < 2 || size < 1) problem("channels and a size are expected");
    OnnxTensor y = make(element_type(x), x.dims);
    lines(x, 1, false, [&](const Ints& o) {
        const auto n = static_cast<std::int64_t>(o.size());
        for (std::int64_t c = 0; c < n; ++c) {
            double sum = 0;
            for (std::int64_t k = std::max<std::int64_t>(0, c - (size - 1) / 2); k <= std::min(n - 1, c + size / 2); ++k)
                sum += number(x, at(o[at(k)])) * number(x, at(o[at(k)]));
            set(y, at(o[at(c)]), number(x, at(o[at(c)])) / std::pow(bias + alpha / static_cast<double>(size) * sum, beta));
        }
    });
    return {y};
}

}  // namespace

Operation reduction_operation(const std::string& op) {
    static const std::map<std::string, Operation> all{
        {"ReduceSum", reduce},
        {"ReduceMean", reduce},
        {"ReduceProd", reduce},
        {"ReduceMax", reduce},
        {"ReduceMin", reduce},
        {"ReduceL1", reduce},
        {"ReduceL2", reduce},
        {"ReduceSumSquare", reduce},
        {"ReduceLogSum", reduce},
        {"ReduceLogSumExp", reduce},
        {"Softmax", softmax},
        {"LogSoftmax", softmax},
        {"Hardmax", softmax},
        {"LayerNormalization", layer_norm},
        {"RMSNormalization", layer_norm},
        {"SimplifiedLayerNormalization", layer_norm},
        {"GroupNormalization", group_norm},
        {"InstanceNormalization", group_norm},
        {"BatchNormalization", batch_norm},
        {"LpNormalization", lp_norm},
        {"MeanVarianceNormalization", mean_variance},
        {"CumSum", cum_sum},
        {"LRN", lrn},
    };
    auto found = all.find(op);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace loopegg::onnx_eval
