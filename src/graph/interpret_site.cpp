#include "graph/interpret_site.hpp"

#include <initializer_list>

#include "graph/domain_sets.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

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

const std::vector<float>* bias_of(const Node& node, const Weights& weights) { return node.flag("bias") ? &weights.at(node.name + ".bias").values : nullptr; }

}  // namespace

Tensor interpret_conv2d(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs) {
    const Tensor &x = *inputs[0], &w = weights.at(node.name + ".weight");
    std::vector<Axis> axes = axes_of(node);
    DomainTest domain(node.domain, axes);
    bool whole = node.domain.whole();
    std::int64_t N = axes[0].extent, G = axes[1].extent, CO = axes[2].extent, CI = axes[3].extent, OH = axes[4].extent, OW = axes[5].extent,
                 KH = axes[6].extent, KW = axes[7].extent;
    std::int64_t H = x.shape[2], W = x.shape[3];
    const Ints &stride = node.integers("stride"), &padding = node.integers("padding"), &dilation = node.integers("dilation");
    std::vector<double> sums(at(element_count(node.shape)), 0.0);
    for (std::int64_t n = 0; n < N; ++n)
        for (std::int64_t g = 0; g < G; ++g)
            for (std::int64_t co = 0; co < CO; ++co)
                for (std::int64_t ci = 0; ci < CI; ++ci)
                    for (std::int64_t kh = 0; kh < KH; ++kh)
                        for (std::int64_t kw = 0; kw < KW; ++kw) {
                            double weight = w.values[at((((g * CO + co) * CI + ci) * KH + kh) * KW + kw)];
                            for (std::int64_t oh = 0; oh < OH; ++oh) {
                                std::int64_t ih = oh * stride[0] + kh * dilation[0] - padding[0];
                                if (ih < 0 || ih >= H) continue;
                                const float* row = &x.values[at(((n * G + g) * CI + ci) * H * W + ih * W)];
                                double* out = &sums[at((((n * G + g) * CO + co) * OH + oh) * OW)];
                                std::int64_t shift = kw * dilation[1] - padding[1];
                                for (std::int64_t ow = 0; ow < OW; ++ow) {
                                    std::int64_t iw = ow * stride[1] + shift;
                                    if (iw < 0 || iw >= W) continue;
                                    if (!whole && !visits(domain, {n, g, co, ci, oh, ow, kh, kw})) continue;
                                    out[ow] += weight * row[iw];
                                }
                            }
                        }
    return finished(node, axes, sums, bias_of(node, weights), OH * OW);
}

Tensor interpret_linear(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs) {
    const Tensor &x = *inputs[0], &w = weights.at(node.name + ".weight");
    std::vector<Axis> axes = axes_of(node);
    DomainTest domain(node.domain, axes);
    bool whole = node.domain.whole();
    std::int64_t N = axes[0].extent, CO = axes[1].extent, CI = axes[2].extent;
    std::vector<double> sums(at(N * CO), 0.0);
    for (std::int64_t n = 0; n < N; ++n)
        for (std::int64_t co = 0; co < CO; ++co)
            for (std::int64_t ci = 0; ci < CI; ++ci)
                if (whole || visits(domain, {n, co, ci})) sums[at(n * CO + co)] += double{w.values[at(co * CI + ci)]} * x.values[at(n * CI + ci)];
    return finished(node, axes, sums, bias_of(node, weights), 1);
}

Tensor interpret_matmul(const Node& node, const Weights&, const std::vector<const Tensor*>& inputs) {
    const Tensor &x = *inputs[0], &y = *inputs[1];
    std::vector<Axis> axes = axes_of(node);
    DomainTest domain(node.domain, axes);
    bool whole = node.domain.whole();
    std::int64_t B = axes[0].extent, I = axes[1].extent, J = axes[2].extent, K = axes[3].extent;
    std::vector<double> sums(at(B * I * J), 0.0);
    for (std::int64_t b = 0; b < B; ++b)
        for (std::int64_t i = 0; i < I; ++i)
            for (std::int64_t k = 0; k < K; ++k)
                for (std::int64_t j = 0; j < J; ++j)
                    if (whole || visits(domain, {b, i, j, k}))
                        sums[at((b * I + i) * J + j)] += double{x.values[at((b * I + i) * K + k)]} * y.values[at((b * K + k) * J + j)];
    return finished(node, axes, sums, nullptr, 1);
}

}  // namespace loopegg
