// The front of an e-graph of networks: for each loss that may be expected, the network that takes the least time.
//
// A label of a class is one network of the class, by what it adds to two sums: its time, and what it leaves of the stages of the original (sites whose outputs
// have as many pixels). An edge of a neural rule leads from a class to a variant, whose labels are labels of the class
// too. The labels of a row or of a join are
// the sums of the labels of its parts. Where all sites of a stage are below a class, the stage is closed: what is left of it becomes points of expected loss.
// Labels that another one beats in everything are dropped, and of labels that are nearly alike the fastest is kept.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/term.hpp"
#include "egraph/edges.hpp"
#include "egraph/egraph.hpp"
#include "egraph/runner.hpp"
#include "fisher/expected_loss.hpp"
#include "graph/graph.hpp"
#include "nest/term/facts.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// The e-graph of one network: its term, grown by the rules of a phase. Variants of the network are reached over the edges of neural rules.
struct NetworkGraphOptions {
    std::vector<std::string> kept{};  // sites that stay as they are
    std::int64_t channels_step = 1;   // widths are multiples of this
    bool proofs = true;
    // Answers (capacity) for the applications of one iteration; empty: everything is allowed.
    std::function<std::vector<Verdict>(const EGraph&, std::span<const CapacityProposal>)> capacity{};
};

class NetworkGraph {
public:
    NetworkGraph(const Graph& original, const RuleBook& book, NetworkGraphOptions options);

    // Applies the rules of the phase 'networks', which widths end, and then of the phase 'layers', which restricts the nests of single layers, where the rule
    // file has it. The report is about both.
    RunReport grow();

    const EGraph& graph() const { return graph_; }
    EGraph& graph() { return graph_; }
    const NestAnalysis& facts() const { return *facts_; }
    ClassId root() const { return graph_.find(root_); }
    const Term& term() const { return term_; }  // of the original network

private:
    RunReport grow(const Phase& phase);

    const RuleBook& book_;
    NetworkGraphOptions options_;
    Term term_;
    EGraph graph_;
    std::shared_ptr<NestAnalysis> facts_;
    ClassId root_;
};

// What a site with a nest adds to a network.
struct LayerWork {
    double ms = 0;
    std::optional<std::size_t> stage{};  // of the loss; none: the site counts for nothing there
    StageWork work{};
    double points = 0;    // what its widths cost by themselves
    double unread = 0;    // -log of the share of the pixels of its input that the site reads
    double variance = 0;  // how much farther outputs gather because of the site, in squared pixels (MeasureInput::spread is the root of the sum)
};

class LayerCosts {
public:
    virtual ~LayerCosts() = default;
    // None where the site cannot have the nest.
    virtual std::optional<LayerWork> of(const std::string& site, const Term& nest) = 0;
};

// What a step of extraction does: it takes a node of a class, or goes over an edge to a variant of the class.
struct Taken {
    ClassId from = 0;
    std::optional<NodeId> node{};       // its parts follow in `parts`
    std::optional<std::size_t> edge{};  // index into EGraph::edges(); one part follows
    std::vector<Taken> parts{};
};

struct FrontPoint {
    double ms = 0, points = 0;
    Term term;    // of the network, in which every width is in the layers
    Taken taken;  // how the term was extracted
};

struct FrontOptions {
    double mixing_precision = 0.01;   // labels whose connections or weights differ by less, as a share of the original's, are nearly alike
    double points_precision = 0.004;  // and so are labels whose loss differs by less
    std::size_t max_labels = 3'000;   // of a class
    std::size_t max_pairs = 300'000;  // of labels of the two parts of a class: where there are more, steps are made longer
    double max_points = 8;            // networks that are expected to lose more are of no interest
    std::function<bool(const Edge& edge, const std::vector<std::string>& sites)> refused{};  // edges to leave out, by the sites below their class
    bool optimistic = false;                                                                 // a curve that no network is below, instead of one of networks
};

class Front {
public:
    // `facts` of the network's graph, which must be rebuilt, and not change while the front is used.
    Front(const NetworkGraph& network, const StagewiseLoss& loss, LayerCosts& costs, const FrontOptions& options = {});
    ~Front();

    // Time and loss of the networks of the front, the fastest first.
    std::span<const std::pair<double, double>> curve() const;  // (ms, points)
    // The network itself.
    FrontPoint network(std::size_t on_curve) const;
    std::size_t labels() const;  // that were kept

private:
    struct Extracted;
    std::unique_ptr<Extracted> extracted_;
};

// By how many points the networks of a front may lose more than the best networks that take as long: how far it is above a curve that no network is below.
double gap_between(std::span<const std::pair<double, double>> front, std::span<const std::pair<double, double>> bound);

// An extraction as text, by which a run that resumes gets a network back that an earlier process found.
nlohmann::json extraction_json(const NetworkGraph& network, const FrontPoint& point);

// None where this e-graph is another one than that of the extraction: its numbers of nodes and edges would mean something else.
std::optional<FrontPoint> extraction_from(const NetworkGraph& network, const nlohmann::json& extraction);

}  // namespace loopegg
