// 'loopegg apply': a plan done to a model by hand.
#include <optional>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "fisher/importance.hpp"
#include "graph/carry_weights.hpp"
#include "graph/flops.hpp"
#include "graph/load.hpp"
#include "graph/model_json.hpp"
#include "optimize/run/request.hpp"
#include "rewrite/plan_rules.hpp"

namespace loopegg {
namespace cmd_apply {

struct Options {
    std::string model, plan, out, rules = "discover", data;
    bool weights = false;
};

// Writes the variant with the original's weights, and says which channels stayed.
Importance write_with_weights(const Graph& original, const Graph& variant, const Options& o) {
    const Model model = load_model(o.model);
    const Importance importance = importance_of(original, brings_weights(o.model, original) ? &model.weights : nullptr, {o.data});
    save_model(variant, carry_weights(original, model.weights, variant, 0, importance.worth()), o.out);
    return importance;
}

Action setup(CLI::App& app) {
    auto o = std::make_shared<Options>();
    app.add_option("MODEL", o->model, "the network: model.json, .onnx, or zoo:NAME")->required();
    app.add_option("PLAN", o->plan, "plan.json: sites and rule applications")->required();
    app.add_option("-o,--out", o->out, "the model.json to write")->required();
    app.add_option("--rules", o->rules, "the rule file whose rules the plan names: a path, discover or exact")->capture_default_str();
    add_unproved_option(app);
    app.add_option("--data", o->data, "images for Fisher Potential, which selects the channels to keep (default: by magnitude)");
    app.add_flag("--weights", o->weights, "write weights even if the model has none (slices of random ones)");
    return [o](Session& session) {
        Graph original = load_graph(o->model);
        Plan plan = read_plan(read_source(o->plan));
        const PlanRules rules = plan_rules(rules_file(o->rules));
        Graph variant = apply_plan(original, plan, rules);
        std::optional<Importance> importance;
        if (o->weights || brings_weights(o->model, original))
            importance = write_with_weights(original, variant, *o);
        else
            write_file(o->out, write_model(variant));
        nlohmann::json changed = nlohmann::json::array();
        for (const Node& node : variant.nodes)
            if (const Node* before = original.find(node.name); before == nullptr || macs(*before) != macs(node)) changed.push_back(node.name);
        nlohmann::json answer{{"file", o->out},
                              {"parameters", parameters(variant)},
                              {"macs", macs(variant)},
                              {"sites", changed},
                              {"original", {{"parameters", parameters(original)}, {"macs", macs(original)}}}};
        if (importance) answer["importance"] = importance_json(*importance, original, variant);
        if (session.json)
            session.answer(answer);
        else
            fmt::print("{}: {} sites changed, parameters {} -> {}, MACs {} -> {}\n", o->out, changed.size(), with_commas(parameters(original)),
                       with_commas(parameters(variant)), with_commas(macs(original)), with_commas(macs(variant)));
        if (!session.json && importance && importance->criterion != Criterion::first) fmt::print("{}\n", importance->why);
        return 0;
    };
}

}  // namespace cmd_apply

const Command apply_command{"apply", "apply a plan to a model", "loopegg apply model.json plan.json -o smaller.json", cmd_apply::setup};

}  // namespace loopegg
