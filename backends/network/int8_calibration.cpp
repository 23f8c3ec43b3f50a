#include "backends/network/int8_calibration.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backends/network/network.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "nest/term/int8_scales.hpp"

namespace loopegg {
namespace {

constexpr std::size_t max_samples = 1 << 16;  // of one site's input, over all images

bool has_int8_products(const Node& node) { return node.op == "conv2d" || node.op == "linear"; }

double mean_square(std::span<const float> samples, const Int8Scales& s) {
    double sum = 0;
    for (const float x : samples) {
        const double back = (static_cast<double>(byte_of(x, s)) - s.zero) * s.input;
        sum += (back - x) * (back - x);
    }
    return sum;
}

void take_samples(std::vector<float>& samples, std::span<const float> values, std::size_t each) {
    const std::size_t step = std::max<std::size_t>(1, values.size() / std::max<std::size_t>(1, each));
    for (std::size_t i = 0; i < values.size(); i += step) samples.push_back(values[i]);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());  // the range is never missed
    if (!values.empty()) samples.push_back(*low), samples.push_back(*high);
}

// Values that are not finite, or that are all the same number, say nothing of the values that the network will see.
void require_range(const std::string& value, std::span<const float> samples) {
    for (const float x : samples)
        if (!std::isfinite(x))
            throw UserError(fmt::format("'{}' has values that are not finite (NaN or infinite) on the data that int8 scales are measured on", value));
    const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
    if (samples.empty() || *low == *high)
        throw UserError(Diagnostic{fmt::format("'{}' is {} throughout the data that int8 scales are measured on: such data has no range of numbers", value,
                                               samples.empty() ? 0.0f : *low),
                                   {},
                                   "give --data images like those that the network will see, or leave int8 out"});
}

}  // namespace

Weights without_int8_scales(Weights weights) {
    std::erase_if(weights, [](const auto& w) { return w.first.ends_with(int8_scales_ending); });
    return weights;
}

nlohmann::json int8_scales_json(const Weights& weights) {
    nlohmann::json all = nlohmann::json::object();
    for (const auto& [name, tensor] : weights)
        if (name.ends_with(int8_scales_ending)) all[name.substr(0, name.size() - int8_scales_ending.size())] = tensor.values;
    return all;
}

bool has_int8_scales(const JsonView& network) {
    const auto scales = network.find("int8");
    return scales && !scales->members().empty();
}

Weights with_int8_scales(Weights weights, const JsonView& network) {
    if (!has_int8_scales(network)) return weights;
    for (const auto& [site, scales] : network.at("int8").members()) {
        Tensor tensor;
        for (const JsonView& one : scales.items()) tensor.values.push_back(static_cast<float>(one.number()));
        if (tensor.values.size() < 2) scales.fail("expected the scale and the zero of the site's input");
        tensor.shape = {static_cast<std::int64_t>(tensor.values.size())};
        weights.try_emplace(int8_scales_name(site), std::move(tensor));
    }
    return weights;
}

Tensor int8_input_scale(std::span<const float> samples) {
    float low = 0, high = 0;
    for (const float x : samples) {
        if (!std::isfinite(x)) throw UserError("an input of a site is not finite (NaN or infinite) on the data that int8 scales are measured on");
        low = std::min(low, x), high = std::max(high, x);
    }
    const float zero = low < 0 ? 128 : 0, most = std::max(-low, high), levels = low < 0 ? 127 : 255;
    Int8Scales best{std::isnormal(most / levels) ? most / levels : 1.0f, zero};
    double least = mean_square(samples, best);
    for (int part = 19; part >= 10 && std::isnormal(most / levels); --part) {
        const Int8Scales tried{most / levels * static_cast<float>(part) / 20, zero};
        if (const double error = mean_square(samples, tried); error < least) least = error, best = tried;
    }
    return {{2}, {best.input, best.zero}};
}

Weights int8_scales(const Graph& graph, const Weights& weights, std::span<const std::vector<Tensor>> inputs) {
    if (inputs.empty()) throw UserError("int8 numbers need scales that are measured on data, and there is none");
    Graph watched = graph;
    watched.outputs.clear();
    std::vector<std::string> values;
    const auto is_input = [&](const std::string& value) {
        return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const GraphInput& in) { return in.name == value; });
    };
    for (const Node& node : graph.nodes)
        if (has_int8_products(node) && std::find(values.begin(), values.end(), node.inputs[0]) == values.end()) values.push_back(node.inputs[0]);
    for (const std::string& value : values)
        if (!is_input(value)) watched.outputs.push_back(value);
    if (watched.outputs.empty()) watched.outputs = graph.outputs;
    const ScratchFile folder(".network");
    compile_network({watched, weights, {}}, find_target("host"), folder.path());
    LoadedNetwork network(folder.path());
    std::map<std::string, std::vector<float>> samples;
    const std::size_t each = std::max<std::size_t>(1, max_samples / inputs.size());
    for (const std::vector<Tensor>& one : inputs) {
        const std::vector<Tensor> outputs = network.run(one);
        for (std::size_t i = 0; i < graph.inputs.size(); ++i) take_samples(samples[graph.inputs[i].name], one[i].values, each);
        for (std::size_t i = 0; i < outputs.size(); ++i) take_samples(samples[watched.outputs[i]], outputs[i].values, each);
    }
    std::filesystem::remove_all(folder.path());
    Weights scales;
    std::map<std::string, Tensor> of_value;
    for (const std::string& value : values) {
        require_range(value, samples.at(value));
        of_value[value] = int8_input_scale(samples.at(value));
    }
    for (const Node& node : graph.nodes)
        if (has_int8_products(node)) scales[int8_scales_name(node.name)] = of_value.at(node.inputs[0]);
    return scales;
}

}  // namespace loopegg
