#include "graph/interpret_site.hpp"

#include <algorithm>
#include <initializer_list>

#include "graph/domain_sets.hpp"
#include "graph/functions.hpp"
#include "graph/loop_operators.hpp"
#include "graph/operators.hpp"
#include "graph/place.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;
bool visits(const DomainTest& domain, std::initializer_list<std::int64_t> instance) { return domain.contains(instance.begin()); }

// Adds the bias and rounds; then what the domain does not compute comes back as its restore says.
Tensor finished(const Node& node, const std::vector<Axis>& axes, const std::vector<double>& sums, const std::vector<float>* bias, std::int64_t inner) {
    Tensor y{node.shape, std::vector<float>(sums.size())};
    for (std::size_t i = 0; i < sums.size(); ++i)
        y.values[i] = static_cast<float>(sums[i] + (bias ? double{(*bias)[at(static_cast<std::int64_t>(i) / inner) % bias->size()]} : 0.0));
    if (node.domain.whole()) return y;
    Tensor computed = y;
    std::vector<std::int64_t> sources = output_sources(node.domain, axes);
    for (std::size_t i = 0; i < sources.size(); ++i) y.values[i] = sources[i] < 0 ? 0.0f : computed.values[at(sources[i])];
    return y;
}

// The outputs [first, second) of a row whose window's point, so far from each output's place, is in the image.
std::pair<std::int64_t, std::int64_t> inside(std::int64_t shift, std::int64_t stride, std::int64_t width, std::int64_t outputs) {
    const std::int64_t from = shift < 0 ? (-shift + stride - 1) / stride : 0;
    const std::int64_t to = width > shift ? std::min(outputs, (width - shift + stride - 1) / stride) : 0;
    return {std::min(from, to), to};
}

void add_row(double* __restrict out, const float* __restrict row, std::int64_t stride, std::int64_t count, double weight) {
    if (stride == 1)
        for (std::int64_t i = 0; i < count; ++i) out[i] += weight * row[i];
    else
        for (std::int64_t i = 0; i < count; ++i) out[i] += weight * row[i * stride];
}

// sums[i, j] += a[i, k] * b[k, j], in the order of k for every sum; a block of k at a time, so that its rows of b stay near.
void add_product(double* sums, const float* a, const float* b, std::int64_t I, std::int64_t J, std::int64_t K) {
    constexpr std::int64_t block = 64;
    for (std::int64_t first = 0; first < K; first += block)
        for (std::int64_t i = 0; i < I; ++i)
            for (std::int64_t k = first; k < std::min(K, first + block); ++k) add_row(sums + i * J, b + k * J, 1, J, a[i * K + k]);
}

const std::vector<float>* bias_of(const Node& node, const Weights& weights) { return node.flag("bias") ? &weights.at(node.name + ".bias").values : nullptr; }

}  // namespace

Tensor interpret_conv2d(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs) {
    const Tensor &x = *inputs[0], &w = weights.at(node.name + ".weight");
    std::vector<Axis> axes = axes_of(node);
    DomainTest domain(node.domain, axes);
    const bool whole = node.domain.whole();
    std::int64_t N = axes[0].extent, G = axes[1].extent, CO = axes[2].extent, CI = axes[3].extent, OH = axes[4].extent, OW = axes[5].extent,
                 KH = axes[6].extent, KW = axes[7].extent;
    std::int64_t H = x.shape[2], W = x.shape[3];
    const Ints &stride = node.integers("stride"), &padding = node.integers("padding"), &dilation = node.integers("dilation");
    // One point of the kernel, no step, no padding: the image is one long row.
    if (whole && KH == 1 && KW == 1 && OH == H && OW == W && stride == Ints{1, 1}) W = OW = H * W, H = OH = 1;
    std::vector<double> sums(at(element_count(node.shape)), 0.0);
    for (std::int64_t n = 0; n < N; ++n)
        for (std::int64_t g = 0; g < G; ++g)
            for (std::int64_t co = 0; co < CO; ++co)
                for (std::int64_t ci = 0; ci < CI; ++ci)
                    for (std::int64_t kh = 0; kh < KH; ++kh)
                        for (std::int64_t kw = 0; kw < KW; ++kw) {
                            const double weight = w.values[at((((g * CO + co) * CI + ci) * KH + kh) * KW + kw)];
                            const std::int64_t shift = kw * dilation[1] - padding[1];
                            const auto [from, to] = inside(shift, stride[1], W, OW);
                            for (std::int64_t oh = 0; oh < OH; ++oh) {
                                std::int64_t ih = oh * stride[0] + kh * dilation[0] - padding[0];
                                if (ih < 0 || ih >= H) continue;
                                const float* row = x.values.data() + (((n * G + g) * CI + ci) * H + ih) * W;
                                double* out = sums.data() + (((n * G + g) * CO + co) * OH + oh) * OW;
                                if (whole)
                                    add_row(out + from, row + from * stride[1] + shift, stride[1], to - from, weight);
                                else
                                    for (std::int64_t ow = from; ow < to; ++ow)
                                        if (visits(domain, {n, g, co, ci, oh, ow, kh, kw})) out[ow] += weight * row[ow * stride[1] + shift];
                            }
                        }
    return finished(node, axes, sums, bias_of(node, weights), node.shape[2] * node.shape[3]);
}

Tensor interpret_linear(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs) {
    const Tensor &x = *inputs[0], &w = weights.at(node.name + ".weight");
    std::vector<Axis> axes = axes_of(node);
    const std::int64_t N = axes[0].extent, CO = axes[1].extent, CI = axes[2].extent;
    std::vector<double> sums(at(N * CO), 0.0);
    if (node.domain.whole()) {
        std::vector<float> turned(w.values.size());
        for (std::int64_t co = 0; co < CO; ++co)
            for (std::int64_t ci = 0; ci < CI; ++ci) turned[at(ci * CO + co)] = w.values[at(co * CI + ci)];
        add_product(sums.data(), x.values.data(), turned.data(), N, CO, CI);
    } else {
        DomainTest domain(node.domain, axes);
        for (std::int64_t n = 0; n < N; ++n)
            for (std::int64_t co = 0; co < CO; ++co)
                for (std::int64_t ci = 0; ci < CI; ++ci)
                    if (visits(domain, {n, co, ci})) sums[at(n * CO + co)] += double{w.values[at(co * CI + ci)]} * x.values[at(n * CI + ci)];
    }
    return finished(node, axes, sums, bias_of(node, weights), 1);
}

Tensor interpret_matmul(const Node& node, const Weights&, const std::vector<const Tensor*>& inputs) {
    const Tensor &x = *inputs[0], &y = *inputs[1];
    std::vector<Axis> axes = axes_of(node);
    DomainTest domain(node.domain, axes);
    const std::int64_t B = axes[0].extent, I = axes[1].extent, J = axes[2].extent, K = axes[3].extent;
    std::vector<double> sums(at(B * I * J), 0.0);
    for (std::int64_t b = 0; b < B; ++b) {
        if (node.domain.whole()) {
            add_product(sums.data() + b * I * J, x.values.data() + b * I * K, y.values.data() + b * K * J, I, J, K);
            continue;
        }
        for (std::int64_t i = 0; i < I; ++i)
            for (std::int64_t k = 0; k < K; ++k)
                for (std::int64_t j = 0; j < J; ++j)
                    if (visits(domain, {b, i, j, k}))
                        sums[at((b * I + i) * J + j)] += double{x.values[at((b * I + i) * K + k)]} * y.values[at((b * K + k) * J + j)];
    }
    return finished(node, axes, sums, nullptr, 1);
}

namespace {

// What an instance reads, or `outside`.
double read(const LoopRead& from, const Tensor& tensor, const std::vector<std::int64_t>& instance, double outside) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < from.shape.size(); ++d) {
        std::int64_t index = from.index[d].offset;
        for (std::size_t a = 0; a < instance.size(); ++a) index += from.index[d].coefficients[a] * instance[a];
        if (index < 0 || index >= from.shape[d]) return outside;
        place = place * from.shape[d] + index;
    }
    return tensor.values[static_cast<std::size_t>(place)];
}

// The next values of these axes, the last of them fastest. False: that was the last.
bool next(std::vector<std::int64_t>& instance, const std::vector<std::size_t>& walked, const std::vector<Axis>& axes) {
    for (std::size_t i = walked.size(); i-- > 0;) {
        if (++instance[walked[i]] < axes[walked[i]].extent) return true;
        instance[walked[i]] = 0;
    }
    return false;
}

}  // namespace

Tensor interpret_loops(const Node& node, const std::vector<const Tensor*>& inputs) {
    const LoopOperator& op = *find_loop_operator(node.op);
    const LoopNest nest = loop_nest(op, sizes_of(op, node));
    const std::string_view read_names[] = {"I", "J"}, sum_name[] = {"acc"};
    const ReadyFunction value(nest.value, read_names), finish(nest.finish, sum_name);
    std::vector<std::size_t> reductions;
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
        if (nest.axes[a].reduction) reductions.push_back(a);
    Tensor y{nest.output_shape(), {}};
    y.values.reserve(static_cast<std::size_t>(element_count(y.shape)));
    std::vector<std::int64_t> instance(nest.axes.size(), 0);
    std::vector<double> operands(2, 0.0);
    do {
        double acc = nest.identity();
        do {
            for (std::size_t i = 0; i < nest.reads.size(); ++i) operands[i] = read(nest.reads[i], *inputs[i], instance, nest.identity());
            const double both[] = {acc, value(operands.data())};
            acc = nest.combine == LoopCombine::max ? apply_function("max", both) : both[1] + (nest.combine == LoopCombine::sum ? acc : 0.0);
        } while (next(instance, reductions, nest.axes));
        y.values.push_back(static_cast<float>(finish(&acc)));
    } while (next(instance, nest.output, nest.axes));
    return y;
}

}  // namespace loopegg
