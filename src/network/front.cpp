#include "network/front.hpp"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "base/sexpr.hpp"
#include "nest/net/net.hpp"
#include "network/class_labels.hpp"
#include "rules/judged.hpp"
#include "rules/limits.hpp"

namespace loopegg {

struct Front::Extracted {
    ClassLabels labels;
    std::vector<std::pair<double, double>> curve{};
    std::vector<std::size_t> label{};  // by place on the curve
};

Front::Front(const NetworkGraph& network, const StagewiseLoss& loss, LayerCosts& costs, const FrontOptions& options)
    : extracted_(new Extracted{ClassLabels(network, loss, costs, options)}) {
    const LabelSet& root = extracted_->labels.root();
    double least = options.max_points + 1;
    for (std::size_t i = 0; i < root.size(); ++i) {  // the fastest first
        const double points = root.points[i] + loss.view_points(extracted_->labels.other_variance() + root.variance[i]);
        if (points >= least) continue;
        least = points;
        extracted_->curve.emplace_back(root.ms[i], points), extracted_->label.push_back(i);
    }
}

Front::~Front() = default;
std::span<const std::pair<double, double>> Front::curve() const { return extracted_->curve; }
std::size_t Front::labels() const { return extracted_->labels.kept(); }

FrontPoint Front::network(std::size_t on_curve) const {
    FrontPoint point{extracted_->curve[on_curve].first, extracted_->curve[on_curve].second, {}, extracted_->labels.taken(extracted_->label[on_curve])};
    point.term = extracted_->labels.term_of(point.taken);
    return point;
}

double gap_between(std::span<const std::pair<double, double>> front, std::span<const std::pair<double, double>> bound) {
    double gap = 0;
    std::size_t at = 0;
    for (const auto& [ms, points] : front) {  // what is as fast as the next network of the front may be as slow as just before it
        while (at + 1 < bound.size() && bound[at + 1].first <= ms) ++at;
        if (!bound.empty() && bound[at].first <= ms) gap = std::max(gap, points - bound[at].second);
    }
    return gap;
}

NetworkGraph::NetworkGraph(const Graph& original, const RuleBook& book, NetworkGraphOptions options)
    : book_(book), options_(std::move(options)), term_(net_of(original, options_.kept)), graph_(EGraph::Options{.proofs = options_.proofs}) {
    NestAnalysis::Options facts;
    facts.proven = !uses_unproved_rules();
    facts.channels_step = options_.channels_step;
    facts_ = std::make_shared<NestAnalysis>(facts);
    graph_.attach(facts_);
    root_ = graph_.add(term_);
    graph_.rebuild();
}

RunReport NetworkGraph::grow() {
    RunReport whole;
    for (const char* name : {"networks", "layers"})
        if (const Phase* phase = book_.find_phase(name)) {
            RunReport report = grow(*phase);
            if (whole.iterations.empty() || report.stop != StopReason::saturated) whole.stop = report.stop;
            whole.seconds += report.seconds, whole.peak_bytes = std::max(whole.peak_bytes, report.peak_bytes);
            std::move(report.iterations.begin(), report.iterations.end(), std::back_inserter(whole.iterations));
        }
    return whole;
}

RunReport NetworkGraph::grow(const Phase& phase) {
    return Runner(graph_, bind_rules(book_.rules_of(phase), Binding{facts_, options_.capacity})).run(limits_of(phase));
}

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
