#include "fisher/libtorch/channel_fisher.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include <torch/csrc/autograd/autograd.h>

#include "fisher/libtorch/scoring.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t most_bytes_at_once = 512ll << 20;  // of activations
constexpr std::int64_t most_images_at_once = 32;
// A trained network answers most images so surely that their gradients vanish. The images that hold this share of all squared errors are scored; the others
// are shown without a backward pass.
constexpr double scored_share = 0.9;

// Where the channels of a site are switched off: at the batch norm that alone reads the site, if there is one, otherwise at the site itself.
std::unordered_map<std::string, std::string> site_of_value(const Graph& graph, const Streams& streams) {
    std::unordered_map<std::string, std::vector<const Node*>> readers;
    for (const Node& node : graph.nodes)
        for (const std::string& input : node.inputs) readers[input].push_back(&node);
    std::unordered_map<std::string, std::string> sites;
    for (const Node& node : graph.nodes) {
        if (!is_site(node) || !streams.written_by(node.name)) continue;
        const std::vector<const Node*>& after = readers[node.name];
        const bool normed = after.size() == 1 && after[0]->op == "batch_norm";
        sites[normed ? after[0]->name : node.name] = node.name;
    }
    return sites;
}

std::int64_t images_that_fit(const Graph& graph, std::int64_t images) {
    const std::int64_t own = graph.inputs.at(0).shape.at(0);
    std::int64_t bytes = 0;
    for (const Node& node : graph.nodes) bytes += element_count(node.shape) * 4 / std::max<std::int64_t>(1, own);
    return std::clamp(most_bytes_at_once / std::max<std::int64_t>(1, bytes), std::int64_t{1}, std::min(images, most_images_at_once));
}

class ChannelSums {
public:
    ChannelSums(const Graph& graph) : streams_(streams_of(graph)), sites_(site_of_value(graph, streams_)) {}

    void show(const Executor& executor, const TensorMap& parameters, const LabelledImages& data) {
        std::vector<std::pair<std::string, at::Tensor>> seen;
        const auto watch = [&](const Node& node, const std::vector<at::Tensor>&, at::Tensor& out) {
            const auto site = sites_.find(node.name);
            if (site == sites_.end()) return;
            if (!out.requires_grad()) out = out.detach().requires_grad_(true);  // the first values become the leaves
            seen.emplace_back(site->second, out);
        };
        const std::int64_t images = data.labels.size(0);
        at::Tensor answers = executor.run({data.images}, parameters, NormMode::running, watch)[0].reshape({images, -1});
        at::Tensor loss = at::cross_entropy_loss(answers, data.labels, {}, at::Reduction::Sum);
        if (!loss.requires_grad()) refuse_without_derivative(executor.graph());
        std::vector<at::Tensor> values;
        for (const auto& [site, value] : seen) values.push_back(value);
        const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, values, {}, false, false, true);
        c10::NoGradGuard none;
        for (std::size_t i = 0; i < seen.size(); ++i) add(seen[i].first, seen[i].second.detach(), gradients[i], images);
    }

    SiteScores over(std::int64_t images) {
        for (auto& [site, sums] : by_site_)
            for (double& v : sums) v /= 2.0 * static_cast<double>(images);
        return std::move(by_site_);
    }

private:
    // The square of what each channel adds to the loss, summed over images. A value whose first dimension is not one of images is left out.
    void add(const std::string& site, const at::Tensor& value, const at::Tensor& gradient, std::int64_t images) {
        const std::int64_t axis = static_cast<std::int64_t>(streams_.of.at(site).axis);
        if (!gradient.defined() || axis == 0 || value.size(0) != images) return;
        at::Tensor product = (value * gradient).movedim(axis, 1).reshape({images, value.size(axis), -1}).sum(2, false, at::kDouble);
        at::Tensor squares = product.square().sum(0).cpu().contiguous();
        std::vector<double>& sums = by_site_[site];
        sums.resize(static_cast<std::size_t>(squares.numel()), 0.0);
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += squares.const_data_ptr<double>()[c];
    }

    Streams streams_;
    std::unordered_map<std::string, std::string> sites_;
    SiteScores by_site_;
};

// The squared distance of each image's probabilities from its label, and how many images are answered correctly.
struct Errors {
    at::Tensor squared;
    std::int64_t right = 0;
};

// Calls `work` with all images, `each` at a time.
void in_turns(const Graph& graph, const LabelledImages& data, std::int64_t each, const std::function<void(const Executor&, const LabelledImages&)>& work) {
    const std::int64_t images = data.labels.size(0);
    const Executor executor(graph, each);
    for (std::int64_t i = 0; i + each <= images; i += each) work(executor, {data.images.narrow(0, i, each), data.labels.narrow(0, i, each)});
    if (const std::int64_t rest = images % each)
        work(Executor(graph, rest), {data.images.narrow(0, images - rest, rest), data.labels.narrow(0, images - rest, rest)});
}

Errors errors_of(const Graph& graph, const TensorMap& parameters, const LabelledImages& data, std::int64_t each) {
    c10::NoGradGuard none;
    Errors errors;
    std::vector<at::Tensor> squared;
    in_turns(graph, data, each, [&](const Executor& executor, const LabelledImages& some) {
        at::Tensor answers = executor.run({some.images}, parameters, NormMode::running)[0].reshape({some.labels.size(0), -1});
        errors.right += (answers.argmax(1) == some.labels).sum().item<std::int64_t>();
        at::Tensor off = at::softmax(answers.to(at::kDouble), 1);
        off.scatter_add_(1, some.labels.unsqueeze(1), at::full({some.labels.size(0), 1}, -1.0, off.options()));
        squared.push_back(off.square().sum(1));
    });
    errors.squared = at::cat(squared);
    return errors;
}

// The images with the largest errors, as many as hold `scored_share` of all, and a multiple of `each` where a network takes no other number.
at::Tensor telling_images(const at::Tensor& squared, std::int64_t multiple) {
    auto [sorted, order] = squared.sort(0, true);
    const double enough = scored_share * sorted.sum().item<double>();
    std::int64_t count = (sorted.cumsum(0) < enough).sum().item<std::int64_t>() + 1;
    count = std::min((count + multiple - 1) / multiple * multiple, squared.size(0));
    return order.narrow(0, 0, count);
}

}  // namespace

ChannelFisher channel_fisher_of(const Graph& graph, const TensorMap& parameters, const LabelledImages& data) {
    const std::int64_t images = data.labels.size(0), at_once = images_at_once(graph, images);
    const bool fixed = at_once < images;  // a batch that is written into the network stays
    const std::int64_t each = fixed ? at_once : images_that_fit(graph, images);
    const Errors errors = errors_of(graph, parameters, data, each);
    const at::Tensor telling = telling_images(errors.squared, fixed ? each : 1);
    c10::AutoGradMode mode(true);
    ChannelSums sums(graph);
    in_turns(graph, {data.images.index_select(0, telling), data.labels.index_select(0, telling)}, std::min(each, telling.size(0)),
             [&](const Executor& executor, const LabelledImages& some) { sums.show(executor, parameters, some); });
    return {sums.over(images), images, telling.size(0), errors.right};
}

}  // namespace loopegg
