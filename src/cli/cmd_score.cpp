// 'loopegg score': capacity measures of a network and its variants, and whether conditions on them hold.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "fisher/conditions.hpp"
#include "fisher/evidence.hpp"
#include "fisher/score.hpp"
#include "graph/load.hpp"
#include "optimize/run/request.hpp"
#include "optimize/run/trainings.hpp"
#include "rewrite/plan_rules.hpp"

namespace loopegg {
namespace cmd_score {

struct Arguments {
    std::string model, data, trainings, precision, rules = "discover";
    std::vector<std::string> plans, models, measures, when;
    double max_loss = default_points;
    std::int64_t batch = 16;
    int seeds = 4, threads = 0;
    std::uint64_t seed = 0;
    bool noise = false, recheck = false, no_store = false, raw = false;
};

void print_row(const std::string& name, const nlohmann::json& row) {
    std::string line = fmt::format("{:<32} {:>12} {:>15}", name, with_commas(row["parameters"].get<long long>()), with_commas(row["macs"].get<long long>()));
    for (const auto& [measure, m] : row["measures"].items())
        if (m["ratio"].is_number() && m["low"].is_number())
            line += fmt::format("  {} {:.4g} (x{:.3f}, {:.3f}-{:.3f})", measure, m["score"].get<double>(), m["ratio"].get<double>(), m["low"].get<double>(),
                                m["high"].get<double>());
        else if (m["score"].is_number())
            line += fmt::format("  {} {:.4g}", measure, m["score"].get<double>());
    fmt::print("{}\n", line);
    if (row.contains("guards"))
        for (const auto& [guard, g] : row["guards"].items())
            fmt::print("    {} {}: {}\n", guard, g["allowed"].get<bool>() ? "admits" : "refuses", g["why"].get<std::string>());
}

void print_answer(const nlohmann::json& answer) {
    fmt::print("{}, {} images a seed, {} seeds, {}\n\n", answer["data"].get<std::string>(), answer["batch"].get<int>(), answer["seeds"].get<int>(),
               answer["engine"].get<std::string>());
    fmt::print("{:<32} {:>12} {:>15}  measures (ratio to the original, 90% interval)\n", "network", "parameters", "MACs");
    print_row(answer["original"]["name"], answer["original"]);
    for (const auto& v : answer["variants"]) print_row(v["plan"], v);
    if (answer.contains("noise")) {
        fmt::print("\nchance alone (the original with redrawn weights):\n");
        for (const auto& [measure, n] : answer["noise"].items())
            if (n["spread"].is_number())
                fmt::print("  {:<14} ratios of {:.3f} to {:.3f}, spread {:.1f}% over {} pairs\n", measure, n["low"].get<double>(), n["high"].get<double>(),
                           100 * n["spread"].get<double>(), n["pairs"].get<int>());
    }
    if (answer.contains("recheck"))
        fmt::print("\nrecomputed: {} verdicts agree, {} differ\n", answer["recheck"]["agree"].get<int>(), answer["recheck"]["differ"].size());
}

int run(const Arguments& a, Session& session) {
    Graph original = load_graph(a.model);
    std::vector<NamedVariant> variants;
    if (!a.plans.empty()) {
        const PlanRules rules = plan_rules(rules_file(a.rules));
        for (const std::string& plan : a.plans) variants.push_back({plan, apply_plan(original, read_plan(read_source(plan)), rules)});
    }
    for (const std::string& model : a.models) variants.push_back({model, load_graph(model)});
    ScoreOptions options;
    options.oracle.conditions = with_points({}, a.max_loss);
    options.oracle.data = a.data;
    if (!a.trainings.empty()) options.oracle.calibration = read_trainings(a.trainings, original, rules_file(a.rules)).calibration;
    options.oracle.batch = a.batch, options.oracle.seeds = a.seeds, options.oracle.seed = a.seed, options.oracle.threads = a.threads;
    if (!a.no_store) options.oracle.store = default_evidence();
    options.oracle.early_stop = false;  // the measures need every seed anyway
    options.measures = a.measures;
    for (const std::string& conditions : a.when) options.also.push_back(measure_conditions(conditions, "--when"));
    options.noise = a.noise, options.recheck = a.recheck, options.raw = a.raw;
    if (a.seeds < 2 && a.noise) throw UsageError("--noise needs at least two seeds");
    std::optional<Model> model;
    if (brings_weights(a.model, original)) {
        model = load_model(a.model);
        options.oracle.trained = &model->weights;
    }
    // Where seeds draw the weights, they differ far more than rounding does.
    options.oracle.double_precision = a.precision.empty() ? model.has_value() : a.precision == "double";
    session.progress.stage("scoring", static_cast<std::int64_t>(variants.size()));
    nlohmann::json answer =
        score_variants(original, variants, options, [&](std::int64_t done, std::int64_t, const std::string& what) { session.progress.advance(done, what); });
    session.progress.finish();
    if (session.json)
        session.answer(answer);
    else
        print_answer(answer);
    return answer.contains("recheck") && !answer["recheck"]["differ"].empty() ? 1 : 0;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->model, "the network: model.json, .onnx, or zoo:NAME")->required();
    app.add_option("--plan", a->plans, "a plan.json whose network is scored along with the original (repeatable)");
    app.add_option("--rules", a->rules, "the rule file whose rules the plans name: a path, discover or exact")->capture_default_str();
    add_unproved_option(app);
    app.add_option("--variant", a->models, "a model whose network is scored along with the original (repeatable)");
    app.add_option("--measure", a->measures, "fisher, fisher-layer, naswot, synflow, snip, grad-norm, params, macs, ensemble, or all (repeatable)");
    app.add_option("--when", a->when, "conditions on measures to evaluate in addition to the expected loss: '(fisher >= 0.9) (params <= 0.5)' (repeatable)");
    add_old_guard_options(app);
    app.add_option("--max-loss", a->max_loss, "points of accuracy that a network may be expected to lose")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 100.0));
    app.add_option("--data", a->data, "images: a folder of CIFAR-10 or .npy files (default: synthetic images)");
    app.add_option("--trainings", a->trainings,
                   R"(a file of training runs of networks derived from MODEL, which calibrate the guard: {"plan": ..., "accuracy": 91.4} on each line)");
    app.add_option("--images,--batch", a->batch, "number of images for each seed")->capture_default_str();
    app.add_option("--seeds", a->seeds, "number of seeds of weights and images")->capture_default_str()->check(CLI::Range(1, 1000));
    app.add_option("--seed", a->seed, "the first seed")->capture_default_str();
    app.add_option("--threads", a->threads, "number of LibTorch threads; 0: all cores")->capture_default_str();
    app.add_option("--precision", a->precision, "single or double (default: double for a model with weights, and single otherwise)")
        ->check(CLI::IsMember({"single", "double"}));
    add_store_option(app);
    app.add_flag("--no-store", a->no_store, "neither read nor write the evidence store");
    app.add_flag("--noise", a->noise, "also report the random variation of each measure");
    app.add_flag("--raw", a->raw, "also report the result of each seed, layer by layer (with --json)");
    app.add_flag("--recheck", a->recheck, "recompute stored results, and compare");
    return [a](Session& session) { return run(*a, session); };
}

}  // namespace cmd_score

const Command score_command{"score", "measure the capacity of a network and its variants, and evaluate conditions",
                            "loopegg score zoo:resnet34-cifar10 --plan plan.json --data cifar10 --json", cmd_score::setup};

}  // namespace loopegg
