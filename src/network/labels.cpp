#include "network/labels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/error.hpp"

namespace loopegg {
namespace {

using Coordinates = std::array<std::uint16_t, 2 + 4 * LabelPool::max_open>;

constexpr int mantissa_bits = 23, step_bits = 8;
constexpr std::int32_t middle = 1 << 15;

std::uint16_t clamped(double steps) { return static_cast<std::uint16_t>(std::clamp(steps, 0.0, 65535.0)); }

// A share of something that there should be much of. Its leading bits are steps of a logarithm.
std::uint16_t below(double share, int coarser) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::clamp(share, 1e-9, 4.0)));
    const std::uint32_t top = std::bit_cast<std::uint32_t>(4.0f);
    return static_cast<std::uint16_t>(((top >> (mantissa_bits - step_bits)) - (bits >> (mantissa_bits - step_bits))) >> coarser);
}
// The largest share with these coordinates.
double largest(std::uint16_t at, int coarser) {
    const std::uint32_t top = std::bit_cast<std::uint32_t>(4.0f) >> (mantissa_bits - step_bits);
    return std::bit_cast<float>((top - (static_cast<std::uint32_t>(at) << coarser) + 1) << (mantissa_bits - step_bits));
}

// A share of something that there should be little of; it may be negative.
std::uint16_t above(double share, double step) { return clamped(std::floor(share / step) + middle); }
double smallest(std::uint16_t at, double step) { return (at - middle) * step; }

// Pairs that no other pair is below in both.
class Staircase {
public:
    bool beats(int x, int y) const {
        const auto after = stairs_.upper_bound(x);
        return after != stairs_.begin() && std::prev(after)->second <= y;
    }
    void add(int x, int y) {
        auto next = stairs_.lower_bound(x);
        while (next != stairs_.end() && next->second >= y) next = stairs_.erase(next);
        stairs_[x] = y;
    }

private:
    std::map<int, int> stairs_;  // y falls as x rises
};

// The two coordinates with the most values; labels are compared by these in a staircase, and by all others one by one.
std::pair<std::size_t, std::size_t> widest(const std::vector<Coordinates>& all, std::size_t coordinates) {
    std::vector<std::pair<std::size_t, std::size_t>> values;  // how many, and of which coordinate
    for (std::size_t c = 0; c < coordinates; ++c) {
        std::set<std::uint16_t> distinct;
        for (const Coordinates& at : all) distinct.insert(at[c]);
        values.emplace_back(distinct.size(), c);
    }
    std::sort(values.rbegin(), values.rend());
    return {values[0].second, values[1].second};
}

bool nowhere_above(const Coordinates& a, const Coordinates& b, std::size_t coordinates) {
    for (std::size_t c = 0; c < coordinates; ++c)
        if (a[c] > b[c]) return false;
    return true;
}

}  // namespace

LabelPool::LabelPool(std::vector<std::size_t> open, const LabelPrecision& precision, std::span<const StageWork> whole) : precision_(precision), table_(256) {
    require(open.size() <= max_open, "few stages are open at once");
    for (std::size_t stage : open) whole_.push_back(whole[stage]);
    labels_.open = std::move(open);
}

// For a stage, besides its work and its sites: connections and weights above what the original has for so much work. Where a label has more work than another,
// and no more of these, no network is worse with the first than with the second: the derivative of the loss along the line between them is nowhere positive.
LabelPool::Coordinates LabelPool::coordinates(double points, double variance, const StageWork* left) const {
    const double mixing = std::ldexp(precision_.mixing, coarser_);
    Coordinates at{};
    at[0] = clamped(std::floor(points / std::ldexp(precision_.points, coarser_)));
    if (precision_.enough_variance > 0) at[1] = below(std::min(1.0, variance / precision_.enough_variance), coarser_ + 2);
    for (std::size_t s = 0; s < whole_.size(); ++s) {
        const StageWork &l = left[s], &w = whole_[s];
        const double macs = l.macs / w.macs;
        at[2 + 4 * s] = below(macs, coarser_);
        at[3 + 4 * s] = static_cast<std::uint16_t>(65535 - std::lround(l.sites));
        at[4 + 4 * s] = above(l.dense_macs / w.dense_macs - macs, mixing);
        at[5 + 4 * s] = above(l.weights / w.weights - macs, mixing);
    }
    return at;
}

void LabelPool::count_as_best(double& points, double& variance, StageWork* left, const Coordinates& at) const {
    const double mixing = std::ldexp(precision_.mixing, coarser_);
    points = std::min(points, at[0] * std::ldexp(precision_.points, coarser_));
    if (precision_.enough_variance > 0) variance = std::max(variance, std::min(1.0, largest(at[1], coarser_ + 2)) * precision_.enough_variance);
    for (std::size_t s = 0; s < whole_.size(); ++s) {
        StageWork& l = left[s];
        const StageWork& w = whole_[s];
        if (l.macs <= 0) continue;
        const double macs = largest(at[2 + 4 * s], coarser_);
        const double dense = std::min(l.dense_macs / w.dense_macs - l.macs / w.macs, smallest(at[4 + 4 * s], mixing));
        const double weights = std::min(l.weights / w.weights - l.macs / w.macs, smallest(at[5 + 4 * s], mixing));
        l.macs = macs * w.macs;
        l.dense_macs = std::max(l.macs, (dense + macs) * w.dense_macs), l.weights = std::max(0.0, (weights + macs) * w.weights);
    }
}

std::size_t LabelPool::place_of(const Coordinates& at) {
    std::uint64_t hash = 1469598103934665603ull;
    for (std::size_t c = 0; c < 2 + 4 * whole_.size(); ++c) hash = (hash ^ at[c]) * 1099511628211ull;
    hash ^= hash >> 31;
    for (std::size_t slot = hash & (table_.size() - 1);; slot = (slot + 1) & (table_.size() - 1)) {
        if (table_[slot] == 0) {
            table_[slot] = static_cast<std::uint32_t>(at_.size() + 1);
            return at_.size();
        }
        if (at_[table_[slot] - 1] == at) return table_[slot] - 1;
    }
}

void LabelPool::grow() {
    table_.assign(table_.size() * 4, 0);
    std::vector<Coordinates> all = std::move(at_);
    at_.clear();
    for (const Coordinates& at : all) place_of(at), at_.push_back(at);
}

void LabelPool::keep(std::size_t i, double ms, double points, double variance, const StageWork* left, const LabelOrigin& origin) {
    if (i == labels_.size()) {
        labels_.ms.push_back(ms), labels_.points.push_back(points), labels_.variance.push_back(variance), labels_.origin.push_back(origin);
        labels_.work.insert(labels_.work.end(), left, left + whole_.size());
        return;
    }
    labels_.ms[i] = ms, labels_.points[i] = points, labels_.variance[i] = variance, labels_.origin[i] = origin;
    std::copy(left, left + whole_.size(), labels_.work.begin() + static_cast<std::ptrdiff_t>(i * whole_.size()));
}

void LabelPool::offer(double ms, double points, double variance, const StageWork* left, const LabelOrigin& origin) {
    if (points > precision_.max_points) return;
    const Coordinates at = coordinates(points, variance, left);
    const std::size_t i = place_of(at);
    const bool fresh = i == at_.size();
    if (!fresh && ms >= labels_.ms[i]) return;
    if (precision_.optimistic) {
        std::array<StageWork, max_open> best;
        std::copy(left, left + whole_.size(), best.begin());
        count_as_best(points, variance, best.data(), at);
        keep(i, ms, points, variance, best.data(), origin);
    } else {
        keep(i, ms, points, variance, left, origin);
    }
    if (!fresh) return;
    at_.push_back(at);
    if (at_.size() * 2 > table_.size()) grow();
}

std::vector<std::uint32_t> LabelPool::unbeaten() const {
    const std::size_t coordinates = 2 + 4 * whole_.size();
    const auto [x, y] = widest(at_, coordinates);
    std::vector<std::uint32_t> order(at_.size()), out;
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return labels_.ms[a] != labels_.ms[b] ? labels_.ms[a] < labels_.ms[b] : at_[a] < at_[b]; });
    std::vector<std::pair<Coordinates, Staircase>> kept;  // by the other coordinates
    std::map<Coordinates, std::size_t> index;
    for (std::uint32_t i : order) {
        Coordinates others = at_[i];
        others[x] = others[y] = 0;
        const auto beats = [&](const auto& k) { return nowhere_above(k.first, others, coordinates) && k.second.beats(at_[i][x], at_[i][y]); };
        if (std::any_of(kept.begin(), kept.end(), beats)) continue;
        const auto [place, fresh] = index.try_emplace(others, kept.size());
        if (fresh) kept.emplace_back(others, Staircase{});
        kept[place->second].second.add(at_[i][x], at_[i][y]);
        out.push_back(i);
    }
    return out;
}

LabelSet LabelPool::take() {
    LabelSet out;
    out.open = labels_.open;
    if (at_.empty()) return out;
    constexpr std::size_t buckets_for_a_label = 8;  // most of them are beaten
    std::vector<std::uint32_t> order;
    while (at_.size() > buckets_for_a_label * precision_.max_labels || (order = unbeaten()).size() > precision_.max_labels) {
        LabelPool coarse({}, precision_, {});
        coarse.labels_.open = labels_.open, coarse.whole_ = whole_, coarse.coarser_ = coarser_ + 1;
        for (std::size_t i = 0; i < at_.size(); ++i)
            coarse.offer(labels_.ms[i], labels_.points[i], labels_.variance[i], labels_.left(i).data(), labels_.origin[i]);
        *this = std::move(coarse);
        order.clear();
    }
    for (std::uint32_t i : order) {
        out.ms.push_back(labels_.ms[i]), out.points.push_back(labels_.points[i]), out.variance.push_back(labels_.variance[i]);
        out.origin.push_back(labels_.origin[i]);
        const auto left = labels_.left(i);
        out.work.insert(out.work.end(), left.begin(), left.end());
    }
    return out;
}

LabelSet fewer_labels(const LabelSet& labels, std::size_t max_labels, LabelPrecision precision, std::span<const StageWork> whole) {
    precision.max_labels = max_labels;
    LabelPool pool(labels.open, precision, whole);
    for (std::uint32_t i = 0; i < labels.size(); ++i) pool.offer(labels.ms[i], labels.points[i], labels.variance[i], labels.left(i).data(), {0, i, 0});
    return pool.take();
}

}  // namespace loopegg
