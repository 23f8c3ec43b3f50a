#include "fisher/libtorch/training.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "fisher/libtorch/parameters.hpp"
#include "graph/operators.hpp"
#include "graph/safetensors.hpp"

namespace loopegg {
namespace {

using Tensors = std::vector<at::Tensor>;
constexpr std::int64_t test_batch = 250;

// Shifts each image by up to 4 pixels (zeros come in) and mirrors half of them.
at::Tensor augmented(const at::Tensor& images, at::Generator& random) {
    std::int64_t n = images.size(0), h = images.size(2), w = images.size(3);
    auto options = at::TensorOptions().dtype(at::kLong);
    at::Tensor top = at::randint(0, 9, {n, 1, 1, 1}, random, options), left = at::randint(0, 9, {n, 1, 1, 1}, random, options);
    at::Tensor mirror = at::randint(0, 2, {n, 1, 1, 1}, random, options).to(at::kBool);
    at::Tensor rows = top + at::arange(h, options).view({1, 1, h, 1});
    at::Tensor across = at::arange(w, options).view({1, 1, 1, w});
    at::Tensor columns = left + at::where(mirror, w - 1 - across, across);
    at::Tensor which = at::arange(n, options).view({n, 1, 1, 1}), channel = at::arange(images.size(1), options).view({1, -1, 1, 1});
    auto to = [&](const at::Tensor& t) { return std::optional<at::Tensor>(t.to(images.device())); };
    return at::index(at::constant_pad_nd(images, {4, 4, 4, 4}), {to(which), to(channel), to(rows), to(columns)});
}

// The share of each image that is the image itself. The rest of the mixture is the image before it in the batch.
at::Tensor own_shares(std::int64_t n, double mixed, at::Generator& random, const at::Tensor& like) {
    at::Tensor chosen = at::rand({n}, random, at::kFloat) < mixed;
    at::Tensor share = at::rand({n}, random, at::kFloat);
    return at::where(chosen, share, at::ones({n})).to(like.options());
}

// The tensors that are trained, and their momentum.
struct Optimizer {
    std::vector<std::string> names;
    Tensors leaves, velocity;

    Optimizer(const Graph& graph, TensorMap& parameters) {
        for (const Node& node : graph.nodes)
            for (const Parameter& p : parameters_of(node)) {
                if (!p.trained) continue;
                at::Tensor leaf = parameters.at(p.name).detach().clone().requires_grad_(true);
                parameters[p.name] = leaf;
                names.push_back(p.name);
                leaves.push_back(leaf);
                velocity.push_back(at::zeros_like(leaf));
            }
        if (leaves.empty()) throw UserError("the network has nothing to train: no node has parameters");
    }

    void step(const Tensors& gradients, double rate, const TrainOptions& options) {
        c10::NoGradGuard none;
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            if (!gradients[i].defined()) continue;
            at::Tensor g = leaves[i].dim() > 1 ? gradients[i] + options.decay * leaves[i] : gradients[i];
            velocity[i].mul_(options.momentum).add_(g);
            leaves[i].sub_(rate * (g + options.momentum * velocity[i]));
        }
    }
};

double rate_at(std::int64_t step, std::int64_t total, double peak) {
    std::int64_t warm = std::max<std::int64_t>(1, total / 20);
    if (step < warm) return peak * static_cast<double>(step + 1) / static_cast<double>(warm);
    return 0.5 * peak * (1 + std::cos(M_PI * static_cast<double>(step - warm) / static_cast<double>(std::max<std::int64_t>(1, total - warm))));
}

// A checkpoint is a file of safetensors, because our own reader trusts nothing in such a file: the folder of a training may be a stranger's.
void save_checkpoint(const TrainOptions& options, const Optimizer& optimizer, const TensorMap& parameters, int epoch) {
    Weights all;
    for (const auto& [name, tensor] : parameters) all["parameter " + name] = from_torch(tensor.detach().cpu());
    for (std::size_t i = 0; i < optimizer.names.size(); ++i) all["velocity " + optimizer.names[i]] = from_torch(optimizer.velocity[i].cpu());
    all["epoch"] = {{2}, {static_cast<float>(epoch), static_cast<float>(options.epochs)}};
    write_file(options.checkpoint, write_safetensors(all));
}

// The epoch to continue with; 0 when there is no checkpoint.
int load_checkpoint(const TrainOptions& options, Optimizer& optimizer, TensorMap& parameters) {
    if (options.checkpoint.empty() || !std::filesystem::exists(options.checkpoint)) return 0;
    const auto misfit = [&] {
        return UserError(
            Diagnostic{fmt::format("the checkpoint {} does not fit this network or is damaged", options.checkpoint), {}, "remove it to start over"});
    };
    Weights all;
    try {
        all = read_safetensors(options.checkpoint);
    } catch (const UserError&) {
        throw misfit();
    }
    const auto take = [&](const std::string& name, at::Tensor& to) {
        const auto found = all.find(name);
        if (found == all.end() || !std::ranges::equal(found->second.shape, to.sizes())) throw misfit();
        to.copy_(to_torch(found->second));
    };
    const Tensor& epoch = all["epoch"];
    if (epoch.values.size() != 2) throw misfit();
    const float done = epoch.values[0], epochs = epoch.values[1];
    if (!(done >= 0 && done <= epochs && epochs <= 1e6f && done == std::floor(done))) throw misfit();
    if (epochs != static_cast<float>(options.epochs))
        throw UserError(Diagnostic{
            fmt::format("the checkpoint {} is of a run of {:.0f} epochs, not {}", options.checkpoint, epochs, options.epochs), {}, "remove it to start over"});
    c10::NoGradGuard none;
    for (auto& [name, tensor] : parameters) take("parameter " + name, tensor);
    for (std::size_t i = 0; i < optimizer.names.size(); ++i) take("velocity " + optimizer.names[i], optimizer.velocity[i]);
    return static_cast<int>(done);
}

}  // namespace

double accuracy_of(const Graph& graph, const TensorMap& parameters, const at::Tensor& images, const at::Tensor& labels) {
    c10::NoGradGuard none;
    std::int64_t right = 0, n = images.size(0);
    Executor full(graph, std::min(n, test_batch));
    for (std::int64_t i = 0; i < n; i += test_batch) {
        std::int64_t count = std::min(test_batch, n - i);
        at::Tensor x = images.narrow(0, i, count);
        at::Tensor logits = (count == full.graph().inputs[0].shape[0] ? full : Executor(graph, count)).run({x}, parameters, NormMode::running)[0].flatten(1);
        right += (logits.argmax(1) == labels.narrow(0, i, count)).sum().item<std::int64_t>();
    }
    return 100.0 * static_cast<double>(right) / static_cast<double>(n);
}

void train_parameters(const Graph& graph, TensorMap& parameters, const TensorSplits& data, const std::optional<Teacher>& teacher, const TrainOptions& options,
                      const std::function<bool(const TrainReport&)>& on_epoch) {
    const auto& [images, labels] = data.train;
    std::int64_t n = images.size(0), batch = std::min<std::int64_t>(options.batch, n), steps = n / batch, total = steps * options.epochs;
    Executor executor(graph, batch);
    std::optional<Executor> knowing;
    if (teacher) knowing.emplace(teacher->graph, batch);
    Optimizer optimizer(graph, parameters);
    for (int epoch = load_checkpoint(options, optimizer, parameters); epoch < options.epochs; ++epoch) {
        auto began = std::chrono::steady_clock::now();
        at::Generator random = at::detail::createCPUGenerator(options.seed * 1000003 + static_cast<std::uint64_t>(epoch));  // a resumed run draws the same
        at::Tensor order = at::randperm(n, random, at::TensorOptions().dtype(at::kLong)).to(images.device());
        double sum = 0;
        for (std::int64_t i = 0; i < steps; ++i) {
            at::Tensor index = order.narrow(0, i * batch, batch);
            at::Tensor x = images.index_select(0, index), y = labels.index_select(0, index);
            if (options.augment) x = augmented(x, random);
            at::Tensor own;  // undefined: no image is mixed
            if (options.mixed > 0) {
                own = own_shares(batch, options.mixed, random, x);
                std::vector<std::int64_t> of_image(static_cast<std::size_t>(x.dim()), 1);
                of_image[0] = batch;
                x = own.view(of_image) * x + (1 - own).view(of_image) * x.roll(1, 0);
            }
            at::Tensor logits = executor.run({x}, parameters, NormMode::batch, {}, {&parameters, 0.1})[0].flatten(1);
            const auto from_labels = [&](const at::Tensor& labels) {
                return at::cross_entropy_loss(logits, labels, {}, at::Reduction::None, -100, options.label_smoothing);
            };
            at::Tensor loss = (own.defined() ? own * from_labels(y) + (1 - own) * from_labels(y.roll(1, 0)) : from_labels(y)).mean();
            if (knowing && options.distill > 0) {
                at::Tensor soft;
                {
                    c10::NoGradGuard none;
                    soft = at::softmax(knowing->run({x}, teacher->parameters, NormMode::running)[0].flatten(1) / options.temperature, 1);
                }
                at::Tensor apart = -(soft * at::log_softmax(logits / options.temperature, 1)).sum(1).mean() * (options.temperature * options.temperature);
                loss = (1 - options.distill) * loss + options.distill * apart;
            }
            double value = loss.item<double>();
            if (!std::isfinite(value))
                throw UserError(Diagnostic{fmt::format("the loss is no finite number in epoch {}, step {}", epoch + 1, i + 1), {}, "a lower --rate may help"});
            sum += value;
            optimizer.step(torch::autograd::grad({loss}, optimizer.leaves, {}, false, false, true), rate_at(epoch * steps + i, total, options.rate), options);
        }
        TrainReport report{epoch + 1, sum / static_cast<double>(std::max<std::int64_t>(1, steps)),
                           accuracy_of(graph, parameters, data.test.images, data.test.labels), 0};
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        if (!options.checkpoint.empty()) save_checkpoint(options, optimizer, parameters, epoch + 1);
        if (!on_epoch(report)) break;
    }
    for (auto& [name, tensor] : parameters) tensor = tensor.detach();
}

}  // namespace loopegg
