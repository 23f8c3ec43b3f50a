#include "fisher/importance.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fisher/data.hpp"
#include "graph/flops.hpp"

namespace loopegg {
namespace {

// More images give steadier scores, but take longer. Large networks see fewer, so that all forward passes cost no more than this work.
constexpr std::int64_t max_images = 1024, min_images = 64;
constexpr double max_scored_work = 1.2e12;  // multiply-accumulates

std::int64_t images_for(const Graph& graph) {
    const std::int64_t own = std::max<std::int64_t>(1, graph.inputs.at(0).shape.at(0));
    const double each = static_cast<double>(macs(graph)) / static_cast<double>(own);
    const std::int64_t images = std::clamp(static_cast<std::int64_t>(max_scored_work / std::max(1.0, each)), min_images, max_images);
    return (images + own - 1) / own * own;  // a batch that is written into the network divides the images
}

// Whether a network answers more images correctly than one that guesses: by two standard deviations.
bool beats_chance(const ChannelFisher& score, std::int64_t classes) {
    const double n = static_cast<double>(score.images), chance = 1.0 / static_cast<double>(std::max<std::int64_t>(2, classes));
    return static_cast<double>(score.right) > n * chance + 2 * std::sqrt(n * chance * (1 - chance));
}

bool tells_apart(const ChannelFisher& score) {
    bool some = false;
    for (const auto& [site, values] : score.by_site)
        for (double v : values) {
            if (!std::isfinite(v)) return false;
            some |= v > 0;
        }
    return some;
}

Importance by_magnitude(const Graph& graph, const Weights& weights, const std::string& why_not) {
    return {Criterion::magnitude, "the channels with the largest weights stay, because " + why_not, weight_magnitudes(graph, weights)};
}

}  // namespace

std::string_view to_string(Criterion criterion) {
    return criterion == Criterion::fisher ? "fisher" : criterion == Criterion::magnitude ? "magnitude" : "first";
}

Importance importance_of(const Graph& graph, const Weights* trained, const ImportanceOptions& options) {
    if (!trained) return {Criterion::first, "the first channels stay, because the network has no trained weights", {}};
    if (options.data.empty() || options.data == "synthetic") return by_magnitude(graph, *trained, "there is no data (--data)");
    const BatchSet data = load_some(options.data, graph, images_for(graph), options.seed);
    ChannelFisher score = torch_runtime().channel_fisher(graph, *trained, data.batches.at(0), options.threads);
    const nlohmann::json evidence{{"data", data.source}, {"images", score.images}, {"scored", score.scored}, {"right", score.right}};
    const auto found = [&](Importance importance) {
        importance.evidence = evidence;
        return importance;
    };
    const std::string images = fmt::format("{} images of {}", score.images, data.source);
    if (!beats_chance(score, classes_of(graph)))
        return found(by_magnitude(
            graph, *trained,
            fmt::format("the network answers only {} of {} correctly, no more than chance: is the data prepared as in its training?", score.right, images)));
    if (!tells_apart(score)) return found(by_magnitude(graph, *trained, "the gradients of " + images + " are no finite numbers above zero"));
    const double right = 100.0 * static_cast<double>(score.right) / static_cast<double>(score.images);
    return found({Criterion::fisher,
                  fmt::format("the channels of the largest Fisher Potential stay, from trained weights and {}, of which the network answers {:.0f}% correctly",
                              images, right),
                  std::move(score.by_site)});
}

nlohmann::json importance_json(const Importance& importance, const Graph& graph, const Graph& variant) {
    nlohmann::json out{{"criterion", to_string(importance.criterion)}, {"why", importance.why}};
    out.update(importance.evidence);
    if (importance.criterion == Criterion::first) return out;
    const KeptWorth kept = kept_worth(graph, importance.channels, variant);
    out["kept"] = {{"channels", kept.channels}, {"branches", kept.branches}};
    return out;
}

}  // namespace loopegg
