#include "graph/weights.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "graph/domain_sets.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

std::uint64_t mixed(std::uint64_t x) {  // splitmix64's output function
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

// The sum of twelve uniform 16-bit numbers, centred: variance 1 and very nearly normal, in whole numbers until the last step. No library
// function whose rounding differs from machine to machine takes part, and no sum of products that a compiler may fuse.
class Normal {
public:
    Normal(std::uint64_t seed, const std::string& name) : key_(Hasher().add(seed).add(std::string_view(name)).finish().low) {}
    double operator()() {
        std::int64_t sum = 0;
        for (int i = 0; i < 3; ++i) {
            std::uint64_t bits = mixed(key_ += 0x9E3779B97F4A7C15ull);
            sum += static_cast<std::int64_t>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48));
        }
        return static_cast<double>(2 * sum - 12 * 65535) * 0x1p-17;
    }

private:
    std::uint64_t key_;
};

Tensor filled(const Shape& shape, float value) { return {shape, std::vector<float>(static_cast<std::size_t>(element_count(shape)), value)}; }

Tensor drawn(const Shape& shape, std::uint64_t seed, const std::string& name, double deviation) {
    Tensor tensor = filled(shape, 0);
    Normal normal(seed, name);
    for (float& value : tensor.values) value = static_cast<float>(normal() * deviation);
    return tensor;
}

double fan_in(const Node& node) {
    std::vector<Axis> axes = axes_of(node);
    if (node.domain.whole()) {
        double product = 1;
        for (const Axis& axis : axes)
            if (axis.reduction) product *= static_cast<double>(axis.extent);
        return product;
    }
    std::vector<std::string> outputs;
    double others = 1;  // output axes that the domain does not name
    std::vector<Axis> named = axes_named_by(node.domain, axes);
    for (const Axis& axis : axes) {
        if (axis.reduction) continue;
        if (std::find(named.begin(), named.end(), axis) != named.end())
            outputs.push_back(axis.name);
        else
            others *= static_cast<double>(axis.extent);
    }
    std::vector<char> written = projection(node.domain, named, outputs);
    return static_cast<double>(instance_count(node.domain, axes)) / (others * static_cast<double>(std::count(written.begin(), written.end(), 1)));
}

}  // namespace

Weights initial_weights(const Graph& graph, std::uint64_t seed) {
    Weights weights;
    for (const Node& node : graph.nodes)
        for (const Parameter& p : parameters_of(node)) {
            bool weight = p.name == node.name + ".weight";
            if (is_site(node) && weight)
                weights[p.name] = drawn(p.shape, seed, p.name, std::sqrt(2.0 / fan_in(node)));
            else if (node.op == "parameter")
                weights[p.name] = drawn(p.shape, seed, p.name, 0.02);
            else
                weights[p.name] = filled(p.shape, weight || p.name == node.name + ".running_var" ? 1.0f : 0.0f);
        }
    return weights;
}

void check_weights(const Graph& graph, const Weights& weights, const std::string& file) {
    std::vector<Diagnostic> problems;
    std::vector<std::string> present;
    for (const auto& [name, tensor] : weights) present.push_back(name);
    for (const Node& node : graph.nodes)
        for (const Parameter& p : parameters_of(node)) {
            auto found = weights.find(p.name);
            if (found == weights.end())
                problems.push_back({fmt::format("'{}' has no tensor '{}' that node '{}' needs", file, p.name, node.name), {}, did_you_mean(p.name, present)});
            else if (found->second.shape != p.shape)
                problems.push_back(
                    {fmt::format("'{}': tensor '{}' is {}, node '{}' needs {}", file, p.name, to_string(found->second.shape), node.name, to_string(p.shape))});
            if (problems.size() == 10) throw UserError(std::move(problems));
        }
    if (!problems.empty()) throw UserError(std::move(problems));
}

Tensor normal_tensor(const Shape& shape, std::uint64_t seed, const std::string& name) { return drawn(shape, seed, name, 1.0); }

}  // namespace loopegg
