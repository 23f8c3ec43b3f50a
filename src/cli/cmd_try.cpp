// 'loopegg try': rules applied to layers by hand, judged, tuned, and timed interleaved with the layers as they were.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "nest/plan/plan.hpp"
#include "optimize/by_hand/try_plan.hpp"

namespace loopegg {
namespace cmd_try {

using nlohmann::json;

struct Options {
    std::string model, site, plan;
    std::vector<std::string> applications;
    TryRequest request;
    bool unjudged = false;
};

Plan plan_from(const Options& o) {
    if (!o.plan.empty()) {
        if (!o.site.empty() || !o.applications.empty()) throw UsageError("--plan has sites and rules of its own: give either --plan, or --site and --apply");
        return read_plan(read_source(o.plan));
    }
    if (o.site.empty() || o.applications.empty())
        throw UsageError(Diagnostic{"say what to try: --site SITE and --apply RULE, or --plan FILE", {}, "'loopegg show MODEL' lists the sites"});
    SiteStep step{o.site, {}};
    for (const std::string& text : o.applications) step.apply.push_back(read_typed_application(make_source("--apply", text)));
    return {{step}};
}

std::string time_words(const json& l) {
    if (l.is_null()) return "not computed";
    if (!l["median_ms"].is_number()) return "not timed";
    if (!l["measured"].get<bool>()) return fmt::format("{:.4f} ms (estimated)", l["median_ms"].get<double>());
    return fmt::format("{:.4f} ms (iqr {:.4f}, n {}{})", l["median_ms"].get<double>(), l["iqr_ms"].get<double>(), l["n"].get<int>(),
                       l["disturbed"].get<bool>() ? ", on a busy machine" : "");
}

void print_layer(const json& layer) {
    const auto sites = layer["sites"].get<std::vector<std::string>>();
    fmt::print("\n{}{}: {}, {}\n", sites.front(), sites.size() > 1 ? fmt::format(" and {} more", sites.size() - 1) : "", layer["sequence"].get<std::string>(),
               layer["effect"].get<std::string>());
    const auto row = [&](const char* name, const json& latency, const std::string& macs, const std::string& parameters) {
        fmt::print("  {:<10} {:<52} {:>16} {:>14}\n", name, time_words(latency), layer[macs].is_number() ? with_commas(layer[macs]) : "",
                   with_commas(layer[parameters]));
    };
    fmt::print("  {:<10} {:<52} {:>16} {:>14}\n", "", "latency, interleaved", "MACs", "parameters");
    row("original", layer["original_latency"], "original_macs", "original_parameters");
    row("variant", layer["latency"], "macs", "parameters");
    if (layer["speedup"].is_number()) fmt::print("  {:.2f}x the speed\n", layer["speedup"].get<double>());
}

void print(const json& answer) {
    const json &before = answer["original"], &after = answer["variant"], &guard = answer["guard"];
    fmt::print("{}: parameters {} -> {}, MACs {} -> {}\n", answer["name"].get<std::string>(), with_commas(before["parameters"]),
               with_commas(after["parameters"]), with_commas(before["macs"]), with_commas(after["macs"]));
    if (!guard.is_null()) fmt::print("the guard {} it: {}\n", guard["allowed"].get<bool>() ? "admits" : "refuses", guard["why"].get<std::string>());
    for (const json& layer : answer["layers"]) print_layer(layer);
    if (answer["layers"].empty()) fmt::print("no layer is changed\n");
}

Action setup(CLI::App& app) {
    auto o = std::make_shared<Options>();
    OptimizeRequest& r = o->request.run;
    r.trials = 12, r.tune_seconds = 30;
    app.add_option("MODEL", o->model, "the network: model.json, .onnx, or zoo:NAME")->required();
    add_store_option(app);
    app.add_option("--site", o->site, "a glob for the layers to change ('loopegg show MODEL' lists them)");
    app.add_option("--apply", o->applications, "a rule with values of its variables: 'group-axes a=co b=ci g=4' (repeatable, applied in order)")
        ->allow_extra_args(false);
    app.add_option("--plan", o->plan, "plan.json instead of --site and --apply");
    app.add_option("--rules", r.rules, "the rule file whose rules are named: a path, discover or exact")->capture_default_str();
    app.add_option("--target", r.target, "the machine to tune and time for ('loopegg targets' lists them)")->capture_default_str();
    app.add_option("--max-loss", r.points, "points of accuracy that the network may be expected to lose")->check(CLI::Range(0.0, 100.0));
    app.add_flag("--unjudged", o->unjudged, "skip the guard");
    app.add_option("--data", r.data, "images for the guard: a folder of CIFAR-10 or .npy files (default: synthetic images)");
    app.add_option("--trials", r.trials, "number of schedules to time for each nest, on average")->capture_default_str()->check(CLI::Range(1, 100'000));
    app.add_option("--tune-seconds", r.tune_seconds, "time for tuning each layer in its original and its changed form")->capture_default_str();
    app.add_option("--batch", r.batch, "batch size of the network")->capture_default_str()->check(CLI::Range(1, 65536));
    app.add_option("--seed", r.seed, "random seed of data, weights and candidates")->capture_default_str();
    add_unproved_option(app);
    return [o](Session& session) {
        o->request.plan = plan_from(*o);
        o->request.run.model = o->model, o->request.judged = !o->unjudged;
        const json answer = try_plan(o->request, session.progress);
        if (session.json)
            session.answer(answer);
        else
            print(answer);
        return 0;
    };
}

}  // namespace cmd_try

const Command try_command{"try", "apply rules to a layer, judge it, tune it, and compare its time with the original",
                          "loopegg try zoo:resnet34-cifar10 --site layer2.1.conv1 --apply 'group-axes a=co b=ci g=4'", cmd_try::setup};

}  // namespace loopegg
