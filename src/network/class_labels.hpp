// The labels of every class below the root of a graph of networks, and how a label was made.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "network/front.hpp"
#include "network/labels.hpp"

namespace loopegg {

class ClassLabels {
public:
    ClassLabels(const NetworkGraph& network, const StagewiseLoss& loss, LayerCosts& costs, const FrontOptions& options);

    const LabelSet& root() const;
    Taken taken(std::size_t label_of_root) const;
    Term term_of(const Taken& taken) const;

    double other_variance() const { return other_variance_; }  // of what is no site: pools
    std::size_t kept() const { return kept_; }

private:
    // One way to make a network of a class: a node or an edge, and the classes of its parts.
    struct Way {
        std::optional<NodeId> node;
        std::optional<std::size_t> edge;
        ClassId first = none, second = none;
    };
    // Labels that are summed up with the labels of one more class, all of whose stages are closed, only when these labels are closed, too: until then, the
    // sums of all pairs are far too many.
    struct Factor {
        ClassId rest = none;
        LabelSet labels;
        std::vector<std::pair<std::size_t, std::size_t>> parts;  // by label: the factors of the parts of its way
    };
    struct Entry {
        std::vector<bool> sites;  // below the class, over all of its nodes and edges, by number
        bool reached = false, done = false, busy = false;
        std::vector<std::size_t> open;
        std::vector<Way> ways;
        std::vector<Factor> factors;
        std::vector<Factor> closing;  // of a closed class: by rest, its labels without the rest. Then `factors` holds the sums
    };
    // A variant of a nest, and the edges that lead to it.
    struct NestVariant {
        ClassId eclass;
        std::vector<std::size_t> edges;
        Term nest;
    };
    class Gathering;

    void measure_original();
    const std::vector<bool>& find_sites(ClassId c);
    std::vector<std::string> names_of(const std::vector<bool>& sites) const;  // in the order of the original's term
    bool closes(const std::vector<bool>& sites, std::size_t stage) const;
    bool touches(const std::vector<bool>& sites, std::size_t stage) const;
    const Entry* labels_of(ClassId c);
    void offer_node(ClassId c, NodeId n, Gathering& gathering);
    void offer_edge(std::size_t edge, Gathering& gathering);
    void offer_pair(NodeId n, ClassId x, ClassId y, double points, Gathering& gathering);
    void offer_layer(NodeId n, Gathering& gathering);
    double unread_points(ClassId c);
    const std::vector<NestVariant>& variants_of(ClassId nest);
    // `rest`: of the label of the class that the factor is to be summed up with.
    Taken taken(ClassId c, std::size_t factor, std::size_t label, std::size_t rest) const;
    Taken taken_part(ClassId part, std::size_t factor, std::size_t label, ClassId rest_class, std::size_t rest) const;
    Taken taken_nest(NodeId layer, std::size_t variant) const;

    const NetworkGraph& network_;
    const EGraph& graph_;
    const StagewiseLoss& loss_;
    LayerCosts& costs_;
    FrontOptions options_;
    LabelPrecision precision_;
    std::map<std::string, std::size_t> numbers_;      // of sites
    std::vector<StageWork> whole_;                    // by stage
    std::vector<std::vector<std::size_t>> of_stage_;  // sites, by stage
    double other_variance_ = 0;
    std::unordered_map<ClassId, std::vector<std::size_t>> edges_;  // by class
    std::unordered_map<ClassId, Entry> entries_;
    std::unordered_map<ClassId, std::vector<NestVariant>> variants_;
    std::size_t kept_ = 0;
};

}  // namespace loopegg
