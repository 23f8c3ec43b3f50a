// Labels of one class of networks, and which of them are worth keeping.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fisher/expected_loss.hpp"

namespace loopegg {

// How a label came to be: by which way of its class, and from which label of each part.
struct LabelOrigin {
    std::uint32_t way = 0, first = 0, second = 0;
};

// What networks of a class add up to. For each label: its time, its points in closed stages, its variance, and the work that is left of each open stage.
struct LabelSet {
    std::vector<std::size_t> open;  // stages that have sites elsewhere, too; in ascending order
    std::vector<double> ms, points, variance;
    std::vector<StageWork> work;  // by label and open stage
    std::vector<LabelOrigin> origin;

    std::size_t size() const { return ms.size(); }
    std::span<const StageWork> left(std::size_t label) const { return {work.data() + label * open.size(), open.size()}; }
};

struct LabelPrecision {
    double mixing = 0.01, points = 0.004;  // steps of shares and of points; the work of a stage has steps of a 256th of its power of two
    double max_points = 8;
    double enough_variance = 0;       // more is of no use
    std::size_t max_labels = 40'000;  // of a class: where there are more, steps are made longer
    bool optimistic = false;          // labels that are nearly alike count as the best of what they might be, so that no network is better than its label
};

// Gathers the labels of a class. Of labels that are nearly alike, the fastest is kept.
class LabelPool {
public:
    static constexpr std::size_t max_open = 4;  // further stages count as closed (class_labels.cpp)

    // `whole`: what the original has of every stage.
    LabelPool(std::vector<std::size_t> open, const LabelPrecision& precision, std::span<const StageWork> whole);

    void offer(double ms, double points, double variance, const StageWork* left, const LabelOrigin& origin);
    // The labels that no other label beats in everything, the fastest first.
    LabelSet take();

    std::size_t size() const { return at_.size(); }

private:
    using Coordinates = std::array<std::uint16_t, 2 + 4 * max_open>;  // smaller is better

    Coordinates coordinates(double points, double variance, const StageWork* left) const;
    void count_as_best(double& points, double& variance, StageWork* left, const Coordinates& at) const;
    std::size_t place_of(const Coordinates& at);
    void grow();
    void keep(std::size_t i, double ms, double points, double variance, const StageWork* left, const LabelOrigin& origin);
    std::vector<std::uint32_t> unbeaten() const;

    LabelPrecision precision_;
    int coarser_ = 0;               // steps are longer by this power of two
    std::vector<StageWork> whole_;  // of the open stages
    LabelSet labels_;
    std::vector<Coordinates> at_;
    std::vector<std::uint32_t> table_;  // open addressing; 0: empty, or the place of a label and one
};

// At most so many labels, each of which represents labels that are nearly alike. LabelOrigin::first is the place of a label in `labels`.
LabelSet fewer_labels(const LabelSet& labels, std::size_t max_labels, LabelPrecision precision, std::span<const StageWork> whole);

}  // namespace loopegg
