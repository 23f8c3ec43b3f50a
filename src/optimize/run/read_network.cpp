// The network, the rules and the guard of a run.
#include <algorithm>

#include <fmt/format.h>

#include "backends/network/int8_calibration.hpp"
#include "base/error.hpp"
#include "base/places.hpp"
#include "base/text.hpp"
#include "fisher/evidence.hpp"
#include "graph/architecture.hpp"
#include "graph/load.hpp"
#include "optimize/run/run.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

// The class whose rules are used; empty: every rule.
std::string class_named(const std::string& asked, const Graph& graph) {
    if (asked == "all") return "";
    if (asked == "auto") return to_string(classify_architecture(graph).kind);
    if (architecture_class(asked)) return asked;
    std::vector<std::string> known = architecture_class_names();
    known.insert(known.begin(), {"auto", "all"});
    throw UsageError(Diagnostic{fmt::format("'{}' is no class of networks: expected {}", asked, join(known, ", ")), {}, did_you_mean(asked, known)});
}

bool is_for(const RuleSet& set, const std::string& name) {
    const auto classes = [](const std::string& tag) { return architecture_class(tag).has_value(); };  // other tags say what machine a set is for
    return name.empty() || std::none_of(set.tags.begin(), set.tags.end(), classes) || std::find(set.tags.begin(), set.tags.end(), name) != set.tags.end();
}

void add_scales(const Graph& graph, Weights& weights, const RoundingData& data) {
    if (!data.calibration.empty()) weights.merge(int8_scales(graph, weights, data.calibration));  // those of the model's file stay
}

}  // namespace

Weights ReadNetwork::carried_to(const Graph& graph, std::uint64_t seed) const {
    Weights weights = carry_weights(network.graph, network.weights, graph, seed, importance.worth());
    add_scales(graph, weights, rounding);
    return weights;
}

std::filesystem::path rules_file(const std::string& rules) {
    const bool a_path = rules.find('/') != std::string::npos || rules.ends_with(".rules");
    if (a_path) return rules;
    const std::filesystem::path file = shipped("rules/" + rules + ".rules");
    if (!std::filesystem::exists(file)) throw UserError("there are no rules named '" + rules + "': expected a file that ends in .rules, or discover or exact");
    return file;
}

RuleBook rules_for(const OptimizeRequest& request, const Graph& graph) {
    const std::string name = class_named(request.architecture, graph);
    RuleBook book = load_rules(rules_file(request.rules));
    std::vector<std::string> left_out;
    for (const RuleSet& set : book.sets)
        if (!is_for(set, name)) left_out.push_back(set.name);
    const auto gone = [&](const std::string& set) { return std::find(left_out.begin(), left_out.end(), set) != left_out.end(); };
    std::erase_if(book.sets, [&](const RuleSet& set) { return gone(set.name); });
    for (Phase& phase : book.phases) std::erase_if(phase.sets, gone);
    return book;
}

ReadNetwork read_network(const OptimizeRequest& request) {
    ReadNetwork read;
    Model model = load_model(request.model.string(), request.seed);
    read.trained = brings_weights(request.model.string(), model.graph);
    read.network.graph = with_batch(std::move(model.graph), request.batch);
    read.network.weights = std::move(model.weights);
    read.network.sites = sites_of(read.network.graph, request.keep);
    if (!request.allowed.empty()) {
        const bool int8 = std::find(request.allowed.begin(), request.allowed.end(), "int8") != request.allowed.end();
        read.rounding = rounding_data(request.data, read.network.graph, request.seed, int8);
        add_scales(read.network.graph, read.network.weights, read.rounding);
    }
    if (!request.trainings.empty()) read.trainings = read_trainings(request.trainings, read.network.graph, rules_file(request.rules));
    return read;
}

OracleOptions oracle_options(const OptimizeRequest& request, const ReadNetwork& read, const RuleBook& book) {
    OracleOptions options;
    options.data = request.data, options.seed = request.seed;
    if (const Phase* phase = book.find_phase("networks"); phase && !phase->when.empty()) options.conditions = phase->when;
    if (request.points) options.conditions = with_points(std::move(options.conditions), *request.points);
    options.trained = read.trained ? &read.network.weights : nullptr;
    options.calibration = read.trainings.calibration;
    options.store = default_evidence();
    return options;
}

}  // namespace loopegg
