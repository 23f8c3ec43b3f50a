#include "optimize/audit/network_replay.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "fisher/conditions.hpp"
#include "nest/net/net.hpp"
#include "network/derivation.hpp"
#include "rewrite/net_rewriter.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

// The sites that must not change are not in the network's own words, so the claim says which they are; the steps then have to leave them alone.
Term without_kept(const Term& net) {
    if (net.is("kept", 1)) return net[0];
    std::vector<Term> children;
    for (const Term& c : net.children()) children.push_back(without_kept(c));
    return children.empty() ? net : Term(net.op(), std::move(children));
}

bool is_width(const Term& net) { return net.is("write", 2) || net.is("read", 2) || net.is("lack", 2) || net.is("within", 2); }

ChosenValues values_of(const json& step) {
    ChosenValues values;
    const json with_values = step.value("with", json::object());
    for (const auto& [variable, value] : with_values.items()) values[variable] = parse_term(value.get<std::string>());
    return values;
}

std::string step_fault(Term& net, const json& step, NetRewriter& rewriter) {
    const std::string rule = step.at("rule");
    const Rewrite* rewrite = rewriter.find(rule);
    if (!rewrite) return "'" + rule + "' is no rule over networks of the rule file";
    if ((rewrite->relation == Relation::neural) != step.at("neural").get<bool>()) return "'" + rule + "' is of the other kind";
    const TreePath at = step.at("at");
    const Term* here = part_at(net, at);
    if (!here) return "there is no such place in the network";
    std::string why;
    const auto made = rewriter.apply(rule, *here, values_of(step), true, &why);
    if (!made) return "'" + rule + "' does not apply: " + why;
    net = with(net, at, *made);
    return "";
}

// The place in the original of a place in a term with widths.
TreePath place_in_original(const Term& net, const TreePath& at) {
    TreePath place, so_far;
    for (std::uint32_t i : at) {
        const Term* here = part_at(net, so_far);
        if (here && !is_width(*here)) place.push_back(i);
        so_far.push_back(i);
    }
    return place;
}

StepAlone step_alone(const json& step, const json& evidence, Graph network) {
    StepAlone out{step.at("rule"), std::move(network), {}, evidence.at("measures"), true, evidence.value("by", "") == "sizes"};
    for (const json& row : out.measures) out.conditions.push_back(condition_of(row)), out.allowed &= row.at("holds").get<bool>();
    return out;
}

bool names_measures(const json& evidence) { return evidence.is_object() && evidence.contains("measures"); }

// The step of a rule by itself, in place of its part of the original; none where the rule applies only after others.
std::optional<StepAlone> alone(const json& step, const Term& original, const TreePath& place, const Graph& graph, NetRewriter& rewriter) {
    const Term* here = part_at(original, place);
    for (const json& guard : step.at("guards")) {
        if (!here || !names_measures(guard.at("evidence"))) continue;
        const auto made = rewriter.apply(step.at("rule"), *here, values_of(step));
        return made ? std::optional(step_alone(step, guard.at("evidence"), graph_of(with(original, place, *made), graph))) : std::nullopt;
    }
    return {};
}

// The steps over the network.
void add_network_steps(const json& network, const Term& original, const Graph& graph, const RuleBook& book, std::vector<StepAlone>& all) {
    NetRewriter rewriter(book, network.value("channels_multiple", 1));
    Term net = original;
    for (const json& step : network.at("steps")) {
        const TreePath at = step.at("at");
        if (step.at("neural").get<bool>())
            if (auto one = alone(step, original, place_in_original(net, at), graph, rewriter)) all.push_back(std::move(*one));
        const Term* here = part_at(net, at);
        const auto made = here ? rewriter.apply(step.at("rule"), *here, values_of(step)) : std::nullopt;
        if (!made) return;  // replay_network() says what is wrong
        net = with(net, at, *made);
    }
}

}  // namespace

std::vector<StepAlone> steps_alone(const json& sequences, const Graph& graph, const RuleBook& book) {
    std::vector<StepAlone> all;
    if (!sequences.contains("network")) return all;
    const json& network = sequences.at("network");
    const Term original = parse_term(network.at("original").get<std::string>());
    add_network_steps(network, original, graph, book, all);
    for (const json& site : sequences.at("sites"))
        for (const json& step : site.at("steps")) {
            const char* judged = step.contains("judged") ? "judged" : "asked";  // the key until 0.2
            if (!step.contains(judged) || !names_measures(step.at(judged).at("evidence"))) continue;
            const Term nest = parse_term(step.at("after").get<std::string>());
            all.push_back(step_alone(step, step.at(judged).at("evidence"), graph_of(with_nests(original, {{site.at("name").get<std::string>(), nest}}), graph)));
        }
    return all;
}

NetworkReplay replay_network(const json& network, const Graph& original, const RuleBook& book) {
    NetworkReplay replay;
    Term net = parse_term(network.at("original").get<std::string>());
    if (without_kept(net) != net_of(original)) {
        replay.fault = "the steps do not begin at the original network";
        return replay;
    }
    NetRewriter rewriter(book, network.value("channels_multiple", 1));
    for (const json& step : network.at("steps")) {
        ++replay.steps;
        if (const std::string why = step_fault(net, step, rewriter); !why.empty()) {
            replay.fault = fmt::format("step {}: {}", replay.steps, why);
            return replay;
        }
    }
    if (net != parse_term(network.at("chosen").get<std::string>())) {
        replay.fault = "the steps do not lead to the network that is claimed";
        return replay;
    }
    replay.graph = graph_of(net, original);
    return replay;
}

}  // namespace loopegg
