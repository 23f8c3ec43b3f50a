#include "nest/schedule/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nest/domain/domain.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

// Fitted by eye to 1,100 tilings of ten convolutions on a Neoverse V1; what comes first hardly changes when one of them is halved or doubled.
struct Fitted {
    double enough_accumulators = 8;             // to hide the latency of a multiply-add
    double load = 1.5, crossing_load = 1.3;     // a vector that begins anywhere
    double branch = 1, store = 2, scattered_store = 8;
    double from_afar = 1, near_bytes = 96 * 1024;   // what is read again and again and does not stay near
    double too_few_registers = 1, windows_of_numbers = 0.5;
    double copied_by_one = 0.06, copied_twice = 0.03;   // the padded input: by one core before the others begin, or by each with the rows around its own
    double never_copied = 1;                    // every read asks whether it is inside
    double sums_in_memory = 4;                  // a load and a store with every multiply-add
    double compiler_lanes = 0.6;                // of what our own vectors give, where a compiler makes them
    double strided_lane = 2;                    // lanes that skip elements: a compiler makes better vectors of a plain loop
    double gathered_lane = 1;                   // a load for each lane
    double start_of_cores = 230000;             // instances that all cores could have done before they have begun
};
constexpr Fitted fitted;

class Cost {
public:
    Cost(const NaiveLoops& nest, const ScheduleShape& s, const VectorMachine& m) : nest_(nest), s_(s), m_(m) {
        for (std::size_t i = 0; i < nest.loops.size(); ++i) {
            if (nest.loops[i].reduction) steps_ *= static_cast<double>(s.body[i]), sum_ *= static_cast<double>(nest.loops[i].extent);
            else accumulators_ *= static_cast<double>(s.body[i]);
            vector_ *= s.lanes[i];
            if (s.lanes[i] > 1) vector_loop_ = i;
        }
        if (!vector_loop_)   // numbers one by one: along the output's rows
            for (std::size_t i = 0; i < nest.loops.size(); ++i)
                if (!nest.loops[i].reduction && (!vector_loop_ || nest.loops[i].contiguous)) vector_loop_ = i;
    }

    double total() const {
        if (!vector_loop_) return 1;   // one instance or none of it is an output: nothing to compare
        double loads = 0, afar = 0, vectors = 0, numbers = 0;
        bool windows = false;
        for (std::size_t r = 0; r < reads(); ++r) {
            const bool as_vectors = vector_loop().moves(r);
            const double each = per_step(r);
            loads += values(r), (as_vectors ? vectors : numbers) += each;
            windows = windows || (!as_vectors && two_windows(r));
            if (read_again(r) && bytes(r) > fitted.near_bytes) afar += as_vectors ? each : each / m_.lanes;
        }
        const bool along_sum = vector_loop().reduction;
        double cost = std::max(1.0, fitted.enough_accumulators / accumulators_) + (fitted.load * loads + fitted.branch) / (steps_ * accumulators_) +
                      (vector_loop().contiguous || along_sum ? fitted.store : fitted.scattered_store) / sum_ + fitted.from_afar * afar / accumulators_;
        if ((accumulators_ + vectors) * registers() + std::ceil(numbers / m_.lanes) > m_.registers) cost += fitted.too_few_registers;
        if (windows) cost += fitted.windows_of_numbers;
        if (nest_.accumulates && !s_.accumulators) cost += fitted.sums_in_memory;
        cost *= std::ceil(s_.tasks / m_.cores) * m_.cores / s_.tasks * m_.lanes / lanes();
        if (s_.tasks > 1) cost += fitted.start_of_cores / static_cast<double>(nest_.instances);
        if (nest_.padded) cost += copies();
        if (vector_loop().weights_only && shared(*vector_loop_)) cost += 0.005;   // weights stay: rarely better, seldom much worse
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (i != *vector_loop_ && nest_.loops[i].contiguous && s_.body[i] > 1) cost -= 0.01;   // neighbours in memory
        return cost;
    }

private:
    std::size_t reads() const { return vector_loop().strides.size(); }
    const NaiveLoop& vector_loop() const { return nest_.loops[*vector_loop_]; }
    std::size_t dimensions(std::size_t r) const { return vector_loop().strides[r].size(); }
    std::int64_t elements(std::size_t loop) const { return s_.body[loop] * s_.lanes[loop]; }   // of an output loop in the tile
    bool shared(std::size_t loop) const { return !s_.shared.empty() && s_.shared[loop]; }
    double registers() const { return std::ceil(static_cast<double>(vector_) / m_.lanes); }   // that one of its vectors takes
    double lanes() const { return vector_ > 1 ? static_cast<double>(vector_) / registers() : s_.compiler_lanes ? std::max(1.0, fitted.compiler_lanes * m_.lanes) : 1; }

    // Of the padded input: once by one core; by each core for its rows, with the rows around them; by each for its own channels; by each all of it, again and again.
    double copies() const {
        if (!s_.copied) return fitted.never_copied;
        if (!s_.copied_inside) return fitted.copied_by_one;
        const auto row = nest_.row_loop();
        if (row && shared(*row)) return fitted.copied_twice / std::max(1.0, static_cast<double>(nest_.loops[*row].extent) / s_.tasks);
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (shared(i) && nest_.loops[i].weights_only) return fitted.copied_by_one * s_.tasks / m_.cores;
        return fitted.copied_by_one / m_.cores;
    }

    // What so many iterations of each loop read along one dimension, if no two read the same, and how far apart the first and the last are.
    struct Walk { double values = 1, reach = 1; };
    template <class Count> Walk walk(std::size_t r, std::size_t d, Count count) const {
        Walk w;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (const std::int64_t stride = nest_.loops[i].strides[r][d]; stride > 0) w.values *= static_cast<double>(count(i)), w.reach += static_cast<double>(stride * (count(i) - 1));
        return w;
    }

    bool window(std::size_t r, std::size_t d) const {
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].reduction && nest_.loops[i].strides[r][d] > 0 && s_.body[i] > 1) return true;
        return false;
    }

    // Loads of one read in the unrolled body. Windows that overlap share what they read: rows of vectors do, numbers along the last dimension do.
    double values(std::size_t r) const {
        const bool as_vectors = vector_loop().moves(r);
        double all = 1, most = 1, dearer = 1;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].moves(r)) most *= static_cast<double>(s_.body[i]);   // one loop may walk two dimensions
        for (std::size_t d = 0; d < dimensions(r); ++d) {
            const std::int64_t along = vector_loop().strides[r][d];
            if (along > 0 && window(r, d)) dearer *= fitted.crossing_load;
            if (gathered(along) && vector_ > 1) dearer *= fitted.strided_lane * static_cast<double>(along);
            // Lanes that are far apart in an input: weights are laid out for the lanes, inputs are not.
            if (vector_ > 1 && nest_.inputs[r] && along > 0 && (along > 4 || d + 1 < dimensions(r))) dearer *= 1 + fitted.gathered_lane * static_cast<double>(vector_) / 4;
            const Walk w = walk(r, d, [&](std::size_t i) { return s_.body[i]; });
            const bool shares = along == 0 && (as_vectors || d + 1 == dimensions(r));
            all *= shares ? std::min(w.values, w.reach) : w.values;
        }
        return std::min(all, most) * dearer;
    }

    // Lanes that are a few elements apart are loaded one by one; weights are laid out for the lanes.
    static bool gathered(std::int64_t stride) { return stride > 1 && stride <= 4; }

    // Numbers that windows in two directions share: too many for the registers, and compilers try.
    bool two_windows(std::size_t r) const {
        for (std::size_t d = 0; d + 1 < dimensions(r); ++d)
            for (std::size_t i = 0; i < nest_.loops.size(); ++i)
                if (!nest_.loops[i].reduction && nest_.loops[i].strides[r][d] > 0 && s_.body[i] > 1 && window(r, d)) return true;
        return false;
    }

    double per_step(std::size_t r) const {
        double n = 1;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (!nest_.loops[i].reduction && nest_.loops[i].moves(r)) n *= static_cast<double>(s_.body[i]);
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

    const NaiveLoops& nest_;
    const ScheduleShape& s_;
    const VectorMachine& m_;
    double steps_ = 1, sum_ = 1, accumulators_ = 1;   // multiply-adds of an accumulator: in the unrolled body, in all
    std::int64_t vector_ = 1;
    std::optional<std::size_t> vector_loop_;
};

void leaves_of_pair(const Term& axis, std::vector<Term>& out) {
    if (axis.is("pair", 2)) leaves_of_pair(axis[0], out), leaves_of_pair(axis[1], out);
    else out.push_back(axis);
}

// One part of a schedule, loop by loop from the outside in.
ScheduleShape shape_of(const NaiveLoops& nest, Term schedule) {
    ScheduleShape s = plain_shape(nest);
    s.accumulators = false;
    bool inside = false;                        // of what the cores share
    std::optional<std::size_t> innermost;       // the last serial loop
    bool reduced = false;                       // a serial sum is open
    for (; !schedule.is("done", 0) && schedule.size() > 0; schedule = schedule[schedule.size() - 1]) {
        const std::string& op = schedule.op().text();
        if (op == "stage") {
            if (schedule[0].op().text() == "O") s.accumulators = s.accumulators || !reduced;
            else if (schedule[0].op().text() == "I") s.copied = true, s.copied_inside = inside;
            continue;
        }
        if (!is_loop_operator(op)) break;
        std::vector<Term> axes;
        leaves_of_pair(loop_axis(schedule), axes);
        for (const Term& axis : axes) {
            const auto loop = nest.find(axis);
            if (!loop) continue;
            const std::int64_t extent = axis_extent(axis);
            const std::string& kind = op == "partial" ? schedule[0].op().text() : op;
            if (kind == "par") s.tasks *= static_cast<double>(extent), s.shared[*loop] = true, inside = true;
            if (kind == "unroll") s.body[*loop] *= extent;
            if (kind == "vec") s.lanes[*loop] *= extent;
            if (op == "partial" && kind == "vec") s.accumulators = true;
            if (kind == "at") innermost = loop, reduced = reduced || nest.loops[*loop].reduction;
        }
    }
    if (innermost && nest.loops[*innermost].contiguous && (s.accumulators || !nest.accumulates)) s.compiler_lanes = true;
    return s;
}

void split(const Term& schedule, std::vector<Term>& parts) {
    if (schedule.is("cat", 2)) split(schedule[0], parts), split(schedule[1], parts);
    else parts.push_back(schedule);
}

}  // namespace

ScheduleShape plain_shape(const NaiveLoops& nest) {
    ScheduleShape s;
    s.body.assign(nest.loops.size(), 1), s.lanes.assign(nest.loops.size(), 1), s.shared.assign(nest.loops.size(), false);
    return s;
}

double shape_cost(const NaiveLoops& nest, const ScheduleShape& shape, const VectorMachine& machine) { return Cost(nest, shape, machine).total(); }

double block_cost(const NaiveLoops& nest, const Term& schedule, const VectorMachine& machine) {
    constexpr double enough_threads = 128, far_load = 8, near_load = 1;   // of a block; of memory, and of what threads share: set by what each is said to take
    double blocks = 1, threads = 1, own = 1, loads = far_load;
    bool bound = nest.loops.empty(), accumulators = !nest.accumulates;
    for (Term s = schedule; s.size() > 0; s = s[s.size() - 1]) {
        const std::string& op = s.op().text();
        if (op == "bind") (s[0].op().text().starts_with("block") ? blocks : threads) *= static_cast<double>(axis_extent(s[1])), bound = true;
        if (op == "unroll") own *= static_cast<double>(axis_extent(s[0]));
        if (op == "stage" && s[0].is("shared", 1)) loads = near_load;
        if (op == "stage" && s[0].op().text() == "O") accumulators = true;
    }
    if (!bound) return std::numeric_limits<double>::infinity();
    const double busy = std::min(1.0, blocks / machine.cores) * std::min(1.0, threads / enough_threads);
    return (1 + loads / std::sqrt(own) + (accumulators ? 0 : far_load)) / busy;
}

double schedule_cost(const Statement& statement, const Term& naive, const Term& schedule, const VectorMachine& machine) {
    std::vector<Term> naive_parts, parts;
    split(naive, naive_parts), split(schedule, parts);
    if (parts.size() != naive_parts.size()) return 1e9;   // cut in another way than the domain is: nothing is known of it
    double sum = 0, instances = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto loops = naive_loops(statement, naive_parts[i]);
        if (!loops) return 1e9;
        const double cost = machine.graphics ? block_cost(*loops, parts[i], machine) : shape_cost(*loops, shape_of(*loops, parts[i]), machine);
        sum += cost * static_cast<double>(loops->instances);
        instances += static_cast<double>(loops->instances);
    }
    return sum / instances;
}

double schedule_cost(const Term& nest, const VectorMachine& machine) {
    const NestParts parts = nest_parts(nest);
    const Statement statement = statement_of(parts.statement);
    return schedule_cost(statement, schedule_of(statement, domain_of(nest)), parts.schedule, machine);
}

}  // namespace loopegg
