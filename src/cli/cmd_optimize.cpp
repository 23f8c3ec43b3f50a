// 'loopegg optimize': the whole pipeline.
#include <fmt/format.h>

#include "backends/network/bundle.hpp"
#include "backends/target/target.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "base/scratch.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/architecture.hpp"
#include "optimize/optimize.hpp"
#include "optimize/run/objective.hpp"
#include "optimize/run/preflight.hpp"
#include "optimize/run/rounds.hpp"
#include "optimize/train/trainer.hpp"
#include "report/page.hpp"

namespace loopegg {
namespace cmd_optimize {

std::string how_it_trained(const nlohmann::json& training) {
    const nlohmann::json &returned = training["returned"], &original = training["original"];
    return fmt::format(
        "{} trained to {:.2f}% (nine of ten training runs: {:.2f} to {:.2f}), the original by the same recipe to {:.2f}%: {:.2f} points lost, {:.2f} had been "
        "predicted; {} training runs of {}, {} failed",
        returned["name"].get<std::string>(), returned["accuracy"].get<double>(), returned["low"].get<double>(), returned["high"].get<double>(),
        original["accuracy"].get<double>(), returned["lost"].get<double>(), returned["predicted"]["points"].get<double>(), training["runs"].get<int>(),
        training["budget"].get<int>(), training["failures"].size());
}

// How sure the accuracy is, in words that promise no more than the guard knows.
std::string how_sure(const nlohmann::json& r) {
    if (r["returned"] == "original") return "the network computes the same function, so its accuracy is unchanged; only its schedules differ";
    if (r.contains("training") && !r["training"]["returned"].is_null()) return how_it_trained(r["training"]);
    const nlohmann::json& guard = r["guard"];
    if (!guard.contains("loss") || !guard["loss"].contains("low"))
        return fmt::format("the guard '{}' allows the network and predicts no accuracy: train it before you rely on it", guard["name"].get<std::string>());
    const nlohmann::json& loss = guard["loss"];
    const std::string unlike = guard.value("unlike", "");
    return fmt::format(
        "after training, the network is expected to lose {:.2f} points (nine of ten such networks: {:.2f} to {:.2f}); it has not been trained yet{}",
        loss["points"].get<double>(), loss["low"].get<double>(), loss["high"].get<double>(),
        unlike.empty() ? "" : fmt::format(". No network like the original has been trained for the guard ({}), so the interval is wider", unlike));
}

// What a person does with the folder.
void print_next(const nlohmann::json& r, const std::string& out) {
    const std::string folder = shell_word(out);
    fmt::print("\n  accuracy:  {}\n\n  everything is in {}/; what to do next:\n", how_sure(r), out);
    auto row = [](const std::string& command, const char* what) { fmt::print("    {:<44} {}\n", command, what); };
    row(out + "/report.html", "open it in a browser: how much faster, is it safe, what changed, why believe it");
    row("loopegg explain " + folder + " --check", "replays every step and runs what was compiled");
    if (r["returned"] != "original") row("loopegg train " + folder + " --data IMAGES", "trains the network; network.py is the same for PyTorch");
    row("loopegg run " + folder + " --input x.npy", "runs network.so; network.h says how to link it, model.onnx is for other tools");
}

// What of the answer is measured, and what to do for more.
void print_rounds(const nlohmann::json& r) {
    if (!r.contains("rounds")) return;
    const nlohmann::json& rounds = r["rounds"];
    const int estimated = rounds["estimated"], measured = rounds["measured"];
    if (measured == 0)
        fmt::print("\n  times:     all are estimates from the data sheet of {}: nothing was measured there yet\n", r["target"].get<std::string>());
    else
        fmt::print("\n  times:     {} schedules were measured in {} rounds, {} are estimated\n", measured, rounds["done"].get<int>(), estimated);
    const nlohmann::json& waiting = rounds["waiting"];
    if (waiting.is_null()) return;
    const std::string folder = waiting["folder"];
    fmt::print("  round {}:   {} programs wait in {}; on a machine with the GPU:\n    sh {}/run_bundle.sh\n", waiting["round"].get<int>(),
               waiting["programs"].get<int>(), folder, shell_word(folder));
    fmt::print("  bring results.txt back into that folder, and the same command continues; --runner 'COMMAND {{}}' does it all\n");
}

void print(const nlohmann::json& r, const std::string& out) {
    auto latency = [](const nlohmann::json& l) {
        if (!l["median_ms"].is_number()) return std::string("not measured");
        if (!l["measured"].get<bool>()) return fmt::format("{:.3f} ms (estimated)", l["median_ms"].get<double>());
        return fmt::format("{:.3f} ms (iqr {:.3f}, n {}{})", l["median_ms"].get<double>(), l["iqr_ms"].get<double>(), l["n"].get<int>(),
                           l["disturbed"].get<bool>() ? ", on a busy machine" : "");
    };
    fmt::print("{}\n\n", r["why"].get<std::string>());
    fmt::print("  {:<10} {:<40} {:>14} {:>16}\n", "", "latency", "parameters", "MACs");
    for (const char* which : {"original", "optimized"})
        fmt::print("  {:<10} {:<40} {:>14} {:>16}\n", which, latency(r[which]), with_commas(r[which]["parameters"]), with_commas(r[which]["macs"]));
    if (r["batch"].get<std::int64_t>() > 1)
        for (const char* which : {"original", "optimized"})
            if (r[which].contains("throughput_per_s"))
                fmt::print("  {:<10} {:.1f} inputs a second, in batches of {}\n", which, r[which]["throughput_per_s"].get<double>(),
                           r["batch"].get<std::int64_t>());
    for (const auto& t : r.value("targets", nlohmann::json::array())) {
        if (t.contains("why"))
            fmt::print("  {:<10} not compiled: {}\n", t["target"].get<std::string>(), t["why"].get<std::string>());
        else
            fmt::print("  {:<10} {:.3f} ms instead of {:.3f} ms, estimated from its data sheet; {} kernels{}\n", t["target"].get<std::string>(),
                       t["optimized"]["median_ms"].get<double>(), t["original"]["median_ms"].get<double>(), t["optimized"]["kernels"].get<int>(),
                       t.contains("network") ? fmt::format("; a network of its own, {:.2f} points", t["network"]["loss"]["points"].get<double>()) : "");
    }
    std::map<std::string, int> sequences;
    for (const auto& s : r["sites"]) ++sequences[s["sequence"].get<std::string>()];
    fmt::print("\n  sequences: ");
    const char* comma = "";
    for (const auto& [name, count] : sequences) fmt::print("{}{} x{}", comma, name, count), comma = ", ";
    fmt::print("\n");
    if (r["optimized"].contains("rounding")) fmt::print("\n  rounding:  {}\n", r["optimized"]["rounding"]["why"].get<std::string>());
    if (const auto unproved = r.value("unproved_rules", std::vector<std::string>{}); !unproved.empty())
        fmt::print("\n  rules:     not proved, and used because of --unproved: {}\n", join(unproved, ", "));
    if (r.contains("importance") && r["returned"] != "original") fmt::print("\n  channels:  {}\n", r["importance"]["why"].get<std::string>());
    print_rounds(r);
    print_next(r, out);
}

void run_round(const std::string& runner, const std::string& folder, Progress& progress) {
    progress.stage("run round");
    run_bundle(runner, folder);
    progress.finish(folder);
}

// What an ONNX file leaves open is said; where the user settles it, the pipeline reads the network from a copy in which it is settled.
void read_as_asked(OptimizeRequest& r, const ReadingOptions& options, const ScratchFile& copy) {
    if (!is_onnx(r.model.string())) return;
    OnnxReading how = options.read();
    if (r.batch > 1) how.batch = r.batch;
    if (how.shapes.empty() && how.batch == 0 && !how.as_float32) {
        std::vector<std::string> notes;
        load_graph(r.model.string(), how, &notes);
        return say_notes(notes);
    }
    const Model model = load_model(r.model.string(), r.seed, how);
    save_model(model.graph, model.weights, copy.path());
    r.model = copy.path();
}

// The command that trains, by default this program's own, and where its runs are kept.
void take_trainer(OptimizeRequest& r, const std::filesystem::path& out) {
    if (!r.trainings.empty()) throw UsageError("--trainings: the recipe of its accuracies need not be that of --train, so give only one of them");
    if (r.train.command.empty()) {
        if (r.data.empty()) throw UsageError("--train-budget: expected a command that trains (--train 'COMMAND {}'), or images for 'loopegg train' (--data)");
        r.train.command =
            fmt::format("{} train {{}} --data {} --seed \"$LOOPEGG_SEED\" --json", shell_word(std::filesystem::read_symlink("/proc/self/exe").string()),
                        shell_word(std::filesystem::absolute(r.data).string()));
    }
    check_trainer(r.train.command);
    if (find_target(r.target == "all" ? "host" : r.target).reach == Reach::bundle)
        throw UsageError("--train: the times of '" + r.target + "' come in rounds; when they are there, train its finalists ('loopegg choose --trainings')");
    r.train.folder = out / "trainings";
}

Action setup(CLI::App& app) {
    auto r = std::make_shared<OptimizeRequest>();
    auto model = std::make_shared<std::string>(), out = std::make_shared<std::string>("out"), runner = std::make_shared<std::string>();
    auto threads = std::make_shared<int>(0);
    auto max_loss = std::make_shared<double>(-1.0);
    app.add_option("MODEL", *model, "the network: model.json, .onnx, or zoo:NAME")->required();
    add_store_option(app);
    app.add_option("--rules", r->rules, "discover, exact (the function stays), paper, or a file")->type_name("RULES")->capture_default_str();
    app.add_option("--target", r->target, "the machine ('loopegg targets' lists them), or all")->type_name("TARGET")->capture_default_str();
    add_old_guard_options(app);
    app.add_option("--objective", r->objective, "what to minimise: " + join(objective_names(), ", "))->capture_default_str();
    app.add_option("--class", r->architecture, "the class of rule sets to use: auto (the network's own), all, or " + join(architecture_class_names(), ", "))
        ->capture_default_str();
    in_unit(app.add_option("--max-loss", *max_loss, "accuracy that the network may be expected to lose")->check(CLI::Range(0.0, 100.0).description("")),
            "POINTS");
    app.add_option("--data", r->data, "images for the guard (CIFAR-10 or .npy files)")->type_name("FOLDER");
    app.add_option("--trainings", r->trainings,
                   R"(a file of training runs of networks derived from MODEL, which calibrate the guard: {"plan": ..., "accuracy": 91.4} on each line)");
    app.add_option("--train", r->train.command,
                   "a command that trains the network in the folder {} and prints {\"accuracy\": PERCENT} as its last line: the most informative networks are "
                   "trained, and the one with the best accuracy is returned; default with --train-budget and --data: 'loopegg train'");
    auto budget = app.add_option("--train-budget", r->train.budget, "maximum number of training runs, including that of MODEL")
                      ->capture_default_str()
                      ->check(CLI::Range(2, 100'000));
    app.add_option("--train-jobs", r->train.jobs, "maximum number of parallel training runs")->capture_default_str()->check(CLI::Range(1, 1000));
    app.add_option("--train-seconds", r->train.seconds, "time limit of a training run in seconds; 0: ten times that of MODEL, and at least 3600")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    app.add_option("--finalists", r->finalists,
                   "number of different networks that the search times and writes to out/finalists, for you to train ('loopegg choose')")
        ->check(CLI::Range(1, 1000));
    app.add_option("--batch", r->batch, "batch size of the network")->capture_default_str()->check(CLI::Range(1, 65536));
    app.add_option("--threads", *threads, "number of threads for which schedules are created and timed; 0: all processors that this process may use")
        ->capture_default_str()
        ->check(CLI::Range(0, 256));
    app.add_option("--seed", r->seed, "random seed of data, weights and candidates")->capture_default_str();
    app.add_option("--trials", r->trials, "number of schedules to time for each nest, on average")->capture_default_str()->check(CLI::Range(1, 100'000));
    in_unit(app.add_option("--tune-seconds", r->tune_seconds, "time for tuning; a run takes about twice as long")->capture_default_str(), "S");
    app.add_option("--rounds", r->max_rounds, "number of rounds for a target that is reached by bundles; 0: all times are estimates")
        ->capture_default_str()
        ->check(CLI::Range(0, 1000));
    app.add_option("--round-programs", r->round_programs, "number of schedules in a round")->capture_default_str()->check(CLI::Range(1, 100'000));
    app.add_option("--runner", *runner, "a command that runs the round in the folder {} on the GPU and writes results.txt there: 'sh {}/run_bundle.sh'");
    app.add_option("-o,--out", *out, "the folder to write")->type_name("DIR")->capture_default_str();
    app.add_option("--keep", r->keep, "a glob for sites that must stay unchanged (repeatable)");
    app.add_flag("--strict-fp", r->strict_fp, "keep the order of every sum; disables Winograd's transforms");
    add_rounding_options(app, r->allowed, r->max_rounding_error);
    add_unproved_option(app);
    app.add_option("--channels-multiple-of", r->channels_multiple, "restrict numbers of channels to multiples of this")->check(CLI::Range(1, 4096));
    const auto positive = CLI::Validator(CLI::PositiveNumber).description("");
    in_unit(app.add_option("--max-latency", r->max_latency_ms, "latency that the network may have; lowest loss wins")->check(positive), "MS");
    in_unit(app.add_option("--min-speedup", r->min_speedup, "speed-up over the tuned original; lowest loss wins")->check(positive), "FACTOR");
    app.add_option("--max-memory", r->max_memory_mb, "maximum memory in megabytes: weights, and the peak of activations")->check(CLI::PositiveNumber);
    app.add_option("--max-params", r->max_parameters, "maximum number of parameters")->check(CLI::PositiveNumber);
    auto reading = add_reading_options(app, true);
    keep_in_short_help(app, {"--rules", "--target", "--max-loss", "--min-speedup", "--max-latency", "--data", "--tune-seconds", "--out"});
    return [=](Session& session) {
        r->model = *model, r->out = *out;
        if (!runner->empty()) check_runner(*runner);
        if (r->target == "all") r->target = "host", r->all_targets = true;
        use_threads(*threads, find_target(r->target));
        if (budget->count() > 0 || !r->train.command.empty()) take_trainer(*r, *out);
        preflight(*r, session.progress);
        const ScratchFile copy(".json");  // its weights are next to it, in this process's own folder
        read_as_asked(*r, *reading, copy);
        if (*max_loss >= 0) r->points = *max_loss;
        if (find_target(r->target).reach == Reach::bundle)
            r->rounds = std::filesystem::path(*out) / "rounds";
        else if (!runner->empty())
            throw UsageError("--runner: only a target that is reached by bundles has rounds to run, and '" + r->target + "' is none");
        if (const auto left = runner->empty() ? std::nullopt : unanswered_round(r->rounds))  // by a run that was killed
            run_round(*runner, left->string(), session.progress);
        nlohmann::json result;
        for (;;) {  // with a runner until nothing is to be measured; each answer is whole, whoever is killed after it
            FolderUpdate update(*out);
            r->out = update.path();
            result = optimize(*r, session.progress);
            session.progress.stage("write");
            write_file(r->out / "report.html", report_page(r->out, *out));
            update.commit();
            session.progress.finish(*out);
            if (runner->empty() || !result.contains("rounds") || result["rounds"]["waiting"].is_null()) break;
            run_round(*runner, result["rounds"]["waiting"]["folder"].get<std::string>(), session.progress);
        }
        if (session.json)
            session.answer(result);
        else
            print(result, *out);
        return 0;
    };
}

}  // namespace cmd_optimize

const Command optimize_command{"optimize", "make a network faster", "loopegg optimize examples/resnet34-cifar10.json --out out", cmd_optimize::setup};

}  // namespace loopegg
