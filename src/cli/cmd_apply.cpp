// 'loopegg apply': a plan done to a model by hand.
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "graph/carry_weights.hpp"
#include "graph/flops.hpp"
#include "graph/load.hpp"
#include "graph/model_json.hpp"
#include "optimize/optimize.hpp"
#include "rewrite/plan_rules.hpp"

namespace loopegg {
namespace {

Action setup(CLI::App& app) {
    struct Options {
        std::string model, plan, out, rules = "discover";
        bool weights = false;
    };
    auto o = std::make_shared<Options>();
    app.add_option("MODEL", o->model, "the network: model.json, .onnx, or zoo:NAME")->required();
    app.add_option("PLAN", o->plan, "plan.json: sites and rule applications")->required();
    app.add_option("-o,--out", o->out, "the model.json to write")->required();
    app.add_option("--rules", o->rules, "the rule file whose rules the plan names: a path, discover or exact")->capture_default_str();
    app.add_flag("--weights", o->weights, "write weights too, also when the model names none (slices of seeded ones)");
    return [o](Session& session) {
        Graph original = load_graph(o->model);
        Plan plan = read_plan(read_source(o->plan));
        const PlanRules rules = plan_rules(rules_file(o->rules));
        Graph variant = apply_plan(original, plan, rules);
        if (o->weights || !original.weights_file.empty())
            save_model(
                variant,
                carry_weights(original, load_model(o->model).weights, variant, 0, original.weights_file.empty() ? KeepChannels::first : KeepChannels::largest),
                o->out);
        else
            write_file(o->out, write_model(variant));
        nlohmann::json changed = nlohmann::json::array();
        for (const Node& node : variant.nodes)
            if (const Node* before = original.find(node.name); before == nullptr || macs(*before) != macs(node)) changed.push_back(node.name);
        if (session.json)
            session.answer({{"file", o->out},
                            {"parameters", parameters(variant)},
                            {"macs", macs(variant)},
                            {"sites", changed},
                            {"original", {{"parameters", parameters(original)}, {"macs", macs(original)}}}});
        else
            fmt::print("{}: {} sites changed, parameters {} -> {}, MACs {} -> {}\n", o->out, changed.size(), with_commas(parameters(original)),
                       with_commas(parameters(variant)), with_commas(macs(original)), with_commas(macs(variant)));
        return 0;
    };
}

}  // namespace

const Command apply_command{"apply", "apply a plan to a model", "loopegg apply model.json plan.json -o smaller.json", setup};

}  // namespace loopegg
