#include "nest/schedule/tiling.hpp"

#include <algorithm>
#include <cmath>

#include "nest/term/axis.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

// Whether the iterator goes up by one where the axis does, as long as no digit above it changes.
bool steps_by_one(const Term& axis, const Term& iterator) {
    if (axis.size() == 0) return axis == iterator;
    if (axis.is("rem", 2) || axis.is("span", 3)) return steps_by_one(axis[0], iterator);
    if (!axis.is("diag", 3)) return false;
    return std::any_of(axis.children().begin() + 1, axis.children().end(),
                       [&](const Term& side) { return axis_extent(side) == axis[0].integer() && steps_by_one(side, iterator); });
}

NaiveLoop naive_loop(const Statement& statement, const Term& axis) {
    constexpr std::int64_t far = 1 << 20;   // further than any window reaches
    NaiveLoop loop{axis, axis_extent(axis)};
    for (const Access& read : statement.reads) loop.strides.emplace_back(read.index.size(), 0);
    for (const Term& leaf : iterators_of(axis)) {
        const auto a = static_cast<std::size_t>(statement.axis(axis_name(leaf)->name));
        const std::int64_t step = steps_by_one(axis, leaf) ? 1 : far;
        loop.reduction = loop.reduction && !statement.writes_axis(static_cast<int>(a));
        const std::vector<Blocking>& blocks = statement.buffers[0].blocking;   // the dimension in blocks is the innermost one
        const Affine& innermost = blocks.empty() ? statement.write.index.back() : statement.write.index[static_cast<std::size_t>(blocks.back().dimension)];
        loop.contiguous = loop.contiguous || innermost.coefficients[a] * step == 1;
        for (std::size_t r = 0; r < statement.reads.size(); ++r)
            for (std::size_t d = 0; d < loop.strides[r].size(); ++d) loop.strides[r][d] += std::abs(statement.reads[r].index[d].coefficients[a]) * step;
    }
    for (std::size_t r = 0; r < statement.reads.size(); ++r)
        if (statement.buffers[static_cast<std::size_t>(statement.reads[r].buffer)].kind == BufferKind::input && loop.moves(r)) loop.weights_only = false;
    return loop;
}

// Fitted by eye to 1,100 tilings of ten convolutions on a Neoverse V1; what comes first hardly changes when one of them is halved or doubled.
constexpr double enough_accumulators = 8;   // to hide the latency of a multiply-add
constexpr double load = 1.5, crossing_load = 1.3;   // a vector that begins anywhere
constexpr double branch = 1, store = 2, scattered_store = 8;
constexpr double from_afar = 1, near_bytes = 96 * 1024;   // what is read again and again and does not stay near
constexpr double too_few_registers = 1, windows_of_numbers = 0.5;
constexpr double copied_by_one = 0.06, copied_twice = 0.03;   // the padded input: by one core before the others begin, or by each with the rows around its own

class Cost {
public:
    Cost(const NaiveLoops& nest, const Tiling& t, const VectorMachine& m) : nest_(nest), t_(t), m_(m) {
        for (std::size_t i = 0; i < nest.loops.size(); ++i)
            if (nest.loops[i].reduction) steps_ *= static_cast<double>(t.unrolled(nest, i)), sum_ *= static_cast<double>(nest.loops[i].extent);
    }

    double total() const {
        const double accumulators = static_cast<double>(t_.accumulators());
        double loads = 0, afar = 0, vectors = 0, numbers = 0;
        bool windows = false;
        for (std::size_t r = 0; r < reads(); ++r) {
            const bool as_vectors = vector_loop().moves(r);
            const double each = per_step(r);
            loads += values(r), (as_vectors ? vectors : numbers) += each;
            windows = windows || (!as_vectors && two_windows(r));
            if (read_again(r) && bytes(r) > near_bytes) afar += as_vectors ? each : each / m_.lanes;
        }
        double cost = std::max(1.0, enough_accumulators / accumulators) + (load * loads + branch) / (steps_ * accumulators) +
                      (vector_loop().contiguous ? store : scattered_store) / sum_ + from_afar * afar / accumulators;
        if (accumulators + vectors + std::ceil(numbers / m_.lanes) > m_.registers) cost += too_few_registers;
        if (windows) cost += windows_of_numbers;
        const double rounds = std::ceil(tasks() / m_.cores);
        cost *= rounds * m_.cores / tasks() * m_.lanes / static_cast<double>(t_.vector);
        if (nest_.padded) cost += t_.rows > 0 ? copied_twice / static_cast<double>(t_.rows) : copied_by_one;
        if (t_.weights_stay) cost += 0.005;                                    // rarely better, seldom much worse
        if (t_.other && nest_.loops[*t_.other].contiguous) cost -= 0.01;       // neighbours in memory
        return cost;
    }

private:
    std::size_t reads() const { return vector_loop().strides.size(); }
    const NaiveLoop& vector_loop() const { return nest_.loops[t_.vector_loop]; }
    std::size_t dimensions(std::size_t r) const { return vector_loop().strides[r].size(); }
    std::int64_t elements(std::size_t loop) const { return t_.size(loop) * (loop == t_.vector_loop ? t_.vector : 1); }   // of an output loop in the tile
    std::int64_t in_body(std::size_t loop) const { return nest_.loops[loop].reduction ? t_.unrolled(nest_, loop) : t_.size(loop); }

    // What so many iterations of each loop read along one dimension, if no two read the same, and how far apart the first and the last are.
    struct Walk { double values = 1, reach = 1; };
    template <class Count> Walk walk(std::size_t r, std::size_t d, Count count) const {
        Walk w;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (const std::int64_t stride = nest_.loops[i].strides[r][d]; stride > 0)
                w.values *= static_cast<double>(count(i)), w.reach += static_cast<double>(stride * (count(i) - 1));
        return w;
    }

    bool window(std::size_t r, std::size_t d) const {
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].reduction && nest_.loops[i].strides[r][d] > 0 && in_body(i) > 1) return true;
        return false;
    }

    // Loads of one read in the unrolled body. Windows that overlap share what they read: rows of vectors do, numbers along the last dimension do.
    double values(std::size_t r) const {
        const bool as_vectors = vector_loop().moves(r);
        double all = 1, most = 1, dearer = 1;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].moves(r)) most *= static_cast<double>(in_body(i));   // one loop may walk two dimensions
        for (std::size_t d = 0; d < dimensions(r); ++d) {
            const std::int64_t along = vector_loop().strides[r][d];
            if (along > 0 && window(r, d)) dearer *= crossing_load;
            if (gathered(along)) dearer *= static_cast<double>(along);
            const Walk w = walk(r, d, [&](std::size_t i) { return in_body(i); });
            const bool shared = along == 0 && (as_vectors || d + 1 == dimensions(r));
            all *= shared ? std::min(w.values, w.reach) : w.values;
        }
        return std::min(all, most) * dearer;
    }

    // Lanes that are a few elements apart are loaded one by one; weights are laid out for the lanes.
    static bool gathered(std::int64_t stride) { return stride > 1 && stride <= 4; }

    // Numbers that windows in two directions share: too many for the registers, and compilers try.
    bool two_windows(std::size_t r) const {
        for (std::size_t d = 0; d + 1 < dimensions(r); ++d)
            for (std::size_t i = 0; i < nest_.loops.size(); ++i)
                if (!nest_.loops[i].reduction && nest_.loops[i].strides[r][d] > 0 && in_body(i) > 1 && window(r, d)) return true;
        return false;
    }

    double per_step(std::size_t r) const {
        double n = 1;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (!nest_.loops[i].reduction && nest_.loops[i].moves(r)) n *= static_cast<double>(t_.size(i));
        return n;
    }

    // What a tile reads of it in its whole sum.
    double bytes(std::size_t r) const {
        double all = sizeof(float);
        for (std::size_t d = 0; d < dimensions(r); ++d) {
            const Walk w = walk(r, d, [&](std::size_t i) { return nest_.loops[i].reduction ? nest_.loops[i].extent : elements(i); });
            all *= std::min(w.values, w.reach);
        }
        return all;
    }

    // Whether other tiles read the same.
    bool read_again(std::size_t r) const {
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (const NaiveLoop& l = nest_.loops[i]; !l.reduction && !l.moves(r) && l.extent > elements(i)) return true;
        return false;
    }

    // Pieces that the cores share.
    double tasks() const {
        const auto pieces = [&](std::size_t i) { return static_cast<double>(nest_.loops[i].extent) / static_cast<double>(elements(i)); };
        if (t_.rows > 0) return static_cast<double>(nest_.loops[*nest_.row_loop()].extent) / static_cast<double>(t_.rows);
        if (t_.weights_stay) return pieces(t_.vector_loop);
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (!nest_.loops[i].reduction && pieces(i) > 1) return pieces(i);
        return 1;
    }

    const NaiveLoops& nest_;
    const Tiling& t_;
    const VectorMachine& m_;
    double steps_ = 1, sum_ = 1;   // multiply-adds of an accumulator: in the unrolled body, in all
};

}  // namespace

bool NaiveLoop::moves(std::size_t read) const {
    return std::any_of(strides[read].begin(), strides[read].end(), [](std::int64_t s) { return s != 0; });
}

std::optional<std::size_t> NaiveLoops::innermost_reduction() const {
    for (std::size_t i = loops.size(); i-- > 0;)
        if (loops[i].reduction) return i;
    return std::nullopt;
}

std::optional<std::size_t> NaiveLoops::row_loop() const {
    std::optional<std::size_t> row;
    for (std::size_t i = 0; i < loops.size(); ++i) {
        if (loops[i].reduction) continue;
        if (loops[i].contiguous) return row;
        row = i;
    }
    return row;
}

std::vector<std::int64_t> divisors(std::int64_t extent, std::int64_t most) {
    std::vector<std::int64_t> all;
    for (std::int64_t k = 1; k <= std::min(extent, most); ++k)
        if (extent % k == 0) all.push_back(k);
    return all;
}

NaiveLoops naive_loops(const Statement& statement, Term schedule) {
    NaiveLoops nest;
    for (; schedule.is("at", 2); schedule = schedule[1]) nest.loops.push_back(naive_loop(statement, schedule[0]));
    nest.padded = std::any_of(statement.reads.begin(), statement.reads.end(), [](const Access& a) { return a.padded; });
    return nest;
}

std::int64_t Tiling::size(std::size_t loop) const { return loop == vector_loop ? vectors : other == loop ? other_tile : third == loop ? third_tile : 1; }

std::int64_t Tiling::unrolled(const NaiveLoops& nest, std::size_t reduction) const {
    constexpr std::int64_t small = 8, steps = 4;   // of one that is too long for all of it
    const std::int64_t extent = nest.loops[reduction].extent;
    const bool innermost = nest.innermost_reduction() == reduction;
    if (extent <= small) return innermost || unroll_first ? extent : 1;
    return innermost && extent % steps == 0 ? steps : 1;
}

double tiling_cost(const NaiveLoops& nest, const Tiling& tiling, const VectorMachine& machine) { return Cost(nest, tiling, machine).total(); }

}  // namespace loopegg
