#include "optimize/audit/network_replay.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/net/graph_of_net.hpp"
#include "nest/net/net.hpp"
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

const Term* part_at(const Term& term, const TreePath& path) {
    const Term* t = &term;
    for (std::uint32_t i : path) {
        if (i >= t->size()) return nullptr;
        t = &(*t)[i];
    }
    return t;
}

std::string step_fault(Term& net, const json& step, NetRewriter& rewriter) {
    const std::string rule = step.at("rule");
    const Rewrite* rewrite = rewriter.find(rule);
    if (!rewrite) return "'" + rule + "' is no rule over networks of the rule file";
    if ((rewrite->relation == Relation::neural) != step.at("neural").get<bool>()) return "'" + rule + "' is of the other kind";
    const TreePath at = step.at("at");
    const Term* here = part_at(net, at);
    if (!here) return "there is no such place in the network";
    ChosenValues values;
    const json with_values = step.value("with", json::object());
    for (const auto& [variable, value] : with_values.items()) values[variable] = parse_term(value.get<std::string>());
    std::string why;
    const auto made = rewriter.apply(rule, *here, values, true, &why);
    if (!made) return "'" + rule + "' does not apply: " + why;
    net = with(net, at, *made);
    return "";
}

}  // namespace

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
