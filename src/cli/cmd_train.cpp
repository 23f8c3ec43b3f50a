// 'loopegg train': fine-tunes the network that 'optimize' chose, or any model, and reports its accuracy before and after.
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "cli/commands.hpp"
#include "fisher/data.hpp"
#include "graph/load.hpp"

namespace loopegg {
namespace cmd_train {

namespace fs = std::filesystem;

struct Arguments {
    std::string model, data, distill, original;
    std::optional<double> distill_weight;
    std::int64_t limit = 0;
    TrainOptions options;
    bool no_augment = false, fresh = false;
};

nlohmann::json run_training(const Arguments& a, Session& session) {
    fs::path folder = a.model, file = fs::is_directory(folder) ? folder / "model.json" : folder;
    if (!a.model.starts_with("zoo:") && !fs::exists(file))
        throw UserError(Diagnostic{fmt::format("there is no model at {}", file.string()), {}, "the folder that 'optimize' wrote, or a model.json"});
    if (a.options.epochs < 1) throw UsageError("--epochs must be at least 1");
    Model model = load_model(a.model.starts_with("zoo:") ? a.model : file.string(), a.options.seed);
    Splits data = load_splits(a.data, model.graph, a.limit, a.options.seed);
    TorchRuntime& torch = torch_runtime();
    TrainOptions options = a.options;
    options.augment = !a.no_augment && data.train.shape.size() == 4;
    options.distill = a.distill_weight.value_or(0);
    std::optional<Model> teacher;
    if (!a.distill.empty()) {
        teacher = load_model(a.distill, a.options.seed);
        if (classes_of(teacher->graph) != classes_of(model.graph))
            throw UserError(
                fmt::format("the teacher '{}' has {} classes, the network {}", teacher->graph.name, classes_of(teacher->graph), classes_of(model.graph)));
        if (!a.distill_weight) options.distill = 0.5;
    }
    fs::path out = a.model.starts_with("zoo:") ? fs::path("trained") : file.parent_path();
    fs::create_directories(out.empty() ? "." : out);
    options.checkpoint = (out / "checkpoint.safetensors").string();
    if (a.fresh) fs::remove(options.checkpoint);

    nlohmann::json answer{{"network", model.graph.name}, {"data", data.source}, {"images", data.train.labels.size()}, {"engine", torch.describe()}};
    answer["before"] = torch.accuracy(model.graph, model.weights, data.test, options.threads);
    if (const std::string& reference = a.original.empty() ? a.distill : a.original; !reference.empty()) {  // a teacher is the original as a rule
        Model original = load_model(reference, a.options.seed);
        answer["original"] = torch.accuracy(original.graph, original.weights, data.test, options.threads);
    }
    session.progress.stage("training", options.epochs);
    answer["epochs"] = nlohmann::json::array();
    torch.train(model.graph, model.weights, data, teacher ? &*teacher : nullptr, options, [&](const TrainReport& r) {
        answer["epochs"].push_back({{"epoch", r.epoch}, {"loss", r.loss}, {"accuracy", r.accuracy}, {"seconds", r.seconds}});
        session.progress.advance(r.epoch, fmt::format("loss {:.3f}, accuracy {:.2f}%", r.loss, r.accuracy));
        return true;
    });
    session.progress.finish();
    answer["after"] = answer["accuracy"] = torch.accuracy(model.graph, model.weights, data.test, options.threads);
    save_model(model.graph, model.weights, out / "trained.json");
    fs::remove(options.checkpoint);  // the run is over; another one begins again
    answer["file"] = (out / "trained.json").string();
    return answer;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("DIR", a->model, "the folder of a run, a model.json, or zoo:NAME")->required();
    app.add_option("--data", a->data, "images: a folder of CIFAR-10 or .npy files (default: noise)");
    app.add_option("--epochs", a->options.epochs, "number of epochs")->capture_default_str();
    app.add_option("--distill", a->distill, "a teacher model for distillation");
    app.add_option("--distill-weight", a->distill_weight, "the weight of the teacher in the loss (default: 0.5)")->check(CLI::Range(0.0, 1.0));
    app.add_option("--mix", a->options.mixed, "the share of images that are mixed with another image (mixup)")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--original", a->original, "a model whose accuracy is reported for comparison (default: the teacher)");
    app.add_option("--batch", a->options.batch, "batch size of a training step")->capture_default_str()->check(CLI::Range(1, 65536));
    app.add_option("--rate", a->options.rate, "the maximum learning rate")->capture_default_str();
    app.add_option("--limit", a->limit, "maximum number of images in each split");
    app.add_option("--seed", a->options.seed, "random seed of new weights, the order of images and their shifts")->capture_default_str();
    app.add_option("--threads", a->options.threads, "number of LibTorch threads; 0: all cores")->capture_default_str();
    app.add_flag("--no-augment", a->no_augment, "do not shift or mirror images");
    app.add_flag("--fresh", a->fresh, "start over, even if there is a checkpoint");
    return [a](Session& session) {
        nlohmann::json answer = run_training(*a, session);
        if (session.json)
            session.answer(answer);
        else {
            fmt::print("accuracy {:.2f}% before, {:.2f}% after {} epochs", answer["before"].get<double>(), answer["after"].get<double>(), a->options.epochs);
            if (answer.contains("original")) fmt::print("; the original {:.2f}%", answer["original"].get<double>());
            fmt::print("\n{}\n", answer["file"].get<std::string>());
        }
        return 0;
    };
}

}  // namespace cmd_train

const Command train_command{"train", "train a network, and report its accuracy before and after", "loopegg train out --data cifar10 --epochs 5",
                            cmd_train::setup};

}  // namespace loopegg
