#include "network/front.hpp"

#include "network/class_labels.hpp"

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

}  // namespace loopegg
