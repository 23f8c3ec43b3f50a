#include "optimize/run/rounding_data.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "fisher/data.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t images_of_data = 128, images_drawn = 32;  // that roundings are judged on
constexpr std::uint64_t noises = 8;

// The images of one large batch, in batches of the network's size.
void split_batch(const Batch& all, std::int64_t size, std::vector<std::vector<Tensor>>& into, std::vector<std::int64_t>& labels) {
    const auto each = all.images.size() / static_cast<std::size_t>(std::max<std::int64_t>(1, all.shape[0]));
    for (std::int64_t at = 0; at + size <= all.shape[0]; at += size) {
        Tensor batch{all.shape, {}};
        batch.shape[0] = size;
        const auto from = all.images.begin() + static_cast<std::ptrdiff_t>(at) * static_cast<std::ptrdiff_t>(each);
        batch.values.assign(from, from + static_cast<std::ptrdiff_t>(size) * static_cast<std::ptrdiff_t>(each));
        into.push_back({std::move(batch)});
        labels.insert(labels.end(), all.labels.begin() + at, all.labels.begin() + at + size);
    }
}

RoundingData noise(const Graph& graph, std::uint64_t seed) {
    RoundingData data{.source = "normal noise"};
    for (std::uint64_t i = 0; i < noises; ++i) {
        data.judged.inputs.emplace_back();
        for (const GraphInput& g : graph.inputs) data.judged.inputs.back().push_back(normal_tensor(g.shape, seed + i, g.name));
    }
    return data;
}

bool has_images(const std::string& data) { return !data.empty() && data != "synthetic"; }

nlohmann::json figure(double share) { return std::isfinite(share) ? nlohmann::json(share) : nlohmann::json("infinite"); }

}  // namespace

nlohmann::json rounding_json(const RoundedSites& rounded) {
    const RoundingError& e = rounded.error;
    nlohmann::json sites = nlohmann::json::object();
    for (const auto& [site, r] : rounded.sites) {
        sites[site] = {{"precision", r.wide ? "float32" : r.kind}, {"tried", r.kind}};
        if (r.alone) sites[site]["largest"] = figure(*r.alone);
    }
    return {{"sites", e.sites},
            {"kept_in_float32", rounded.wide().size()},
            {"largest", figure(e.largest)},
            {"mean", figure(e.mean)},
            {"outputs", e.outputs},
            {"same_answer", e.same_answer},
            {"of_site", std::move(sites)}};
}

void require_data_for_scales(const std::string& data) {
    if (!has_images(data))
        throw UserError(Diagnostic{"--allow int8: the scales of int8 numbers are measured on data, and there is none",
                                   {},
                                   "give --data FOLDER: CIFAR-10, or .npy batches of images like those that the network will see"});
}

RoundingData rounding_data(const std::string& data, const Graph& graph, std::uint64_t seed, bool scales) {
    const bool given = has_images(data);
    if (graph.inputs.size() != 1 || graph.inputs[0].shape.size() < 2) {
        if (given) throw UserError("--data has images for networks of one input, and '" + graph.name + "' has others");
        return noise(graph, seed);
    }
    const std::int64_t batch = std::max<std::int64_t>(1, graph.inputs[0].shape[0]), parts = scales ? 2 : 1,
                       batches = ((given ? images_of_data : images_drawn) + batch - 1) / batch;
    const BatchSet set = load_some(data, graph, batch * batches * parts, seed);
    RoundingData out{.source = set.source, .images = given};
    split_batch(set.batches[0], batch, out.judged.inputs, out.judged.labels);
    if (out.judged.inputs.size() < static_cast<std::size_t>(parts))
        throw UserError(fmt::format("{} has {} images, and {} are needed: {} of {}", data, set.batches[0].shape[0], batch * parts,
                                    scales ? "a batch to measure scales on and another to judge them by," : "a batch", batch));
    if (!given) out.judged.labels.clear();
    if (!scales) return out;
    const auto half = static_cast<std::ptrdiff_t>((out.judged.inputs.size() + 1) / 2);
    out.calibration.assign(out.judged.inputs.begin(), out.judged.inputs.begin() + half);
    out.judged.inputs.erase(out.judged.inputs.begin(), out.judged.inputs.begin() + half);
    out.judged.labels.erase(out.judged.labels.begin(), out.judged.labels.begin() + half * batch);
    return out;
}

}  // namespace loopegg
