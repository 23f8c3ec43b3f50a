#include "fisher/libtorch/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_map>

#include <ATen/CPUGeneratorImpl.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "graph/domain_sets.hpp"
#include "graph/flops.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

at::Generator generator(std::uint64_t seed, const std::string& name) { return at::detail::createCPUGenerator(Hasher().add(seed).add(name).finish().low >> 1); }

at::Tensor draw(const Node& node, const Parameter& p, std::uint64_t seed) {
    at::Generator random = generator(seed, p.name);
    bool weight = p.name.ends_with(".weight");
    if (node.op == "conv2d" && weight) return at::randn(p.shape, random) * std::sqrt(2.0 / fan_in(node));
    if (node.op == "linear" && weight) return (at::rand(p.shape, random) * 2 - 1) / std::sqrt(fan_in(node));
    if (node.op == "parameter") return at::randn(p.shape, random) * 0.02;
    bool one = (weight && node.op.ends_with("_norm")) || p.name.ends_with(".running_var");
    return one ? at::ones(p.shape) : at::zeros(p.shape);
}

struct Block {
    std::int64_t from_out, to_out, outs, from_in, to_in, ins;
};

// Entries of a convolution's weight that two nodes share, in a tensor of the variant's shape. `fresh` is called only when some entry has no source. Copied
// entries are scaled. Channels are compared by their place in the whole tensor, so there is one block for each pair of groups that overlap.
template <class Fresh>
at::Tensor carry_conv(const Node& from, const at::Tensor& w, double scale, const Node& to, const Shape& shape, Fresh fresh) {
    std::int64_t g0 = from.integer("groups"), g1 = to.integer("groups");
    std::int64_t first[2], step[2];  // kernel place k of the variant is place first + k * step of the original
    for (std::size_t d = 0; d < 2; ++d) {
        std::int64_t dilation = from.integers("dilation")[d];
        first[d] = (from.integers("padding")[d] - to.integers("padding")[d]) / dilation;
        step[d] = std::max<std::int64_t>(1, to.integers("dilation")[d] / dilation);
        std::int64_t last = first[d] + (shape[d + 2] - 1) * step[d];
        if (first[d] < 0 || last >= w.size(static_cast<std::int64_t>(d) + 2)) return fresh();
    }
    std::int64_t kernel = shape[2] * shape[3];
    std::int64_t co0 = w.size(0) / g0, co1 = shape[0] / g1, ci0 = w.size(1), ci1 = shape[1], covered = 0;
    std::vector<Block> blocks;
    for (std::int64_t a = 0; a < g1; ++a)
        for (std::int64_t b = 0; b < g0; ++b) {
            if (g0 == g1) {  // the same groups: the first channels of each group are left
                if (a != b) continue;
                std::int64_t outs = std::min(co0, co1), ins = std::min(ci0, ci1);
                covered += outs * ins * kernel;
                blocks.push_back({a * co0, a * co1, outs, 0, 0, ins});
                continue;
            }
            std::int64_t out_lo = std::max(a * co1, b * co0), out_hi = std::min((a + 1) * co1, (b + 1) * co0);
            std::int64_t in_lo = std::max(a * ci1, b * ci0), in_hi = std::min((a + 1) * ci1, (b + 1) * ci0);
            if (out_lo >= out_hi || in_lo >= in_hi) continue;
            covered += (out_hi - out_lo) * (in_hi - in_lo) * kernel;
            blocks.push_back({out_lo, out_lo, out_hi - out_lo, in_lo - b * ci0, in_lo - a * ci1, in_hi - in_lo});
        }
    at::Tensor made = covered == element_count(shape) ? at::empty(shape, w.options()) : fresh();
    for (const Block& b : blocks) {
        at::Tensor source = w.narrow(0, b.from_out, b.outs).narrow(1, b.from_in, b.ins);
        for (std::int64_t d = 0; d < 2; ++d)
            source = source.slice(d + 2, first[d], first[d] + (shape[static_cast<std::size_t>(d) + 2] - 1) * step[d] + 1, step[d]);
        at::Tensor target = made.narrow(0, b.to_out, b.outs).narrow(1, b.to_in, b.ins);
        target.copy_(source);
        if (scale != 1.0) target.mul_(scale);
    }
    return made;
}

template <class Fresh>
at::Tensor carry_leading(const at::Tensor& w, const Shape& shape, Fresh fresh) {
    at::Tensor made = fresh();
    if (w.dim() != made.dim()) return made;
    at::Tensor source = w, target = made;
    for (std::int64_t d = 0; d < w.dim(); ++d) {
        std::int64_t shared = std::min(w.size(d), shape[static_cast<std::size_t>(d)]);
        source = source.narrow(d, 0, shared), target = target.narrow(d, 0, shared);
    }
    target.copy_(source);
    return made;
}

}  // namespace

namespace {

double restricted_fan_in(const Node& node, const std::vector<Axis>& axes, double reads) {
    std::vector<std::string> outputs;
    std::vector<Axis> named = axes_named_by(node.domain, axes);
    double whole = 1, computed = 1;
    for (const Axis& axis : named) {
        if (!axis.reduction) outputs.push_back(axis.name);
        whole *= static_cast<double>(axis.extent);
    }
    std::vector<char> written = projection(node.domain, named, outputs);
    computed = std::max<double>(1, static_cast<double>(std::count(written.begin(), written.end(), 1)));
    double outputs_named = 1;
    for (const Axis& axis : named)
        if (!axis.reduction) outputs_named *= static_cast<double>(axis.extent);
    // The instances of each computed output, as a share of those in the whole nest.
    double share = static_cast<double>(instance_count(node.domain, named)) / computed / (whole / outputs_named);
    return std::max(1.0, reads * share);
}

}  // namespace

double fan_in(const Node& node) {
    std::vector<Axis> axes = axes_of(node);
    double reads = 1;
    for (const Axis& axis : axes)
        if (axis.reduction) reads *= static_cast<double>(axis.extent);
    if (node.domain.whole()) return std::max(1.0, reads);
    // Counting instances means visiting them, and candidates share most of their restrictions, so the counts are kept.
    static std::mutex mutex;
    static std::unordered_map<std::string, double> known;
    std::string key = node.op + to_string(node.domain);
    for (const Axis& axis : axes) key += "," + axis.name + std::to_string(axis.extent);
    {
        std::lock_guard lock(mutex);
        if (auto found = known.find(key); found != known.end()) return found->second;
    }
    double value = restricted_fan_in(node, axes, reads);
    std::lock_guard lock(mutex);
    if (known.size() > 100000) known.clear();
    return known.emplace(std::move(key), value).first->second;
}

TensorMap draw_parameters(const Graph& graph, std::uint64_t seed) {
    TensorMap all;
    for (const Node& node : graph.nodes)
        for (const Parameter& p : parameters_of(node)) all[p.name] = draw(node, p, seed);
    return all;
}

TensorMap carry_parameters(const Graph& original, const TensorMap& from, const Graph& variant, std::uint64_t seed, bool rescale) {
    std::unordered_map<std::string, const Node*> by_name;
    for (const Node& node : original.nodes) by_name[node.name] = &node;
    TensorMap all;
    for (const Node& node : variant.nodes) {
        auto found = by_name.find(node.name);
        const Node* old = found == by_name.end() || found->second->op != node.op ? nullptr : found->second;
        for (const Parameter& p : parameters_of(node)) {
            auto source = old ? from.find(p.name) : from.end();
            if (source == from.end()) {
                all[p.name] = draw(node, p, seed).to(from.begin()->second.options());  // on the same device and with the same precision as the others
                continue;
            }
            bool weight = p.name.ends_with(".weight") && (node.op == "conv2d" || node.op == "linear");
            double scale = weight && rescale ? std::sqrt(fan_in(*old) / fan_in(node)) : 1.0;
            const at::Tensor& w = source->second;
            bool same = w.sizes() == at::IntArrayRef(p.shape) && (node.op != "conv2d" || !weight || old->attrs == node.attrs);
            auto fresh = [&] { return draw(node, p, seed).to(w.options()); };
            auto scaled = [&] { return scale == 1.0 ? w : w * scale; };
            all[p.name] = same                            ? scaled()
                          : weight && node.op == "conv2d" ? carry_conv(*old, w, scale, node, p.shape, fresh)
                                                          : carry_leading(scaled(), p.shape, fresh);
        }
    }
    return all;
}

}  // namespace loopegg
