#include "optimize/search/extraction.hpp"

#include "base/sexpr.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

json to_json(const Taken& taken) {
    json parts = json::array();
    for (const Taken& part : taken.parts) parts.push_back(to_json(part));
    return {taken.from, taken.node ? json(*taken.node) : json(), taken.edge ? json(*taken.edge) : json(), parts};
}

Taken taken_from(const json& j) {
    Taken taken{j.at(0).get<ClassId>(), {}, {}, {}};
    if (!j.at(1).is_null()) taken.node = j.at(1).get<NodeId>();
    if (!j.at(2).is_null()) taken.edge = j.at(2).get<std::size_t>();
    for (const json& part : j.at(3)) taken.parts.push_back(taken_from(part));
    return taken;
}

json size_of(const NetworkGraph& network) {
    return {network.graph().node_count(), network.graph().class_count(), network.graph().edges().size(), to_string(network.term())};
}

}  // namespace

json extraction_json(const NetworkGraph& network, const FrontPoint& point) {
    return {{"graph", size_of(network)}, {"term", to_string(point.term)}, {"taken", to_json(point.taken)}, {"ms", point.ms}, {"points", point.points}};
}

std::optional<FrontPoint> extraction_from(const NetworkGraph& network, const json& extraction) {
    if (!extraction.is_object() || extraction.value("graph", json()) != size_of(network)) return {};
    return FrontPoint{extraction.at("ms"), extraction.at("points"), parse_term(extraction.at("term").get<std::string>()), taken_from(extraction.at("taken"))};
}

}  // namespace loopegg
