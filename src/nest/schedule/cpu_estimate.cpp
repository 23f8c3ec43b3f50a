#include "nest/schedule/cpu_estimate.hpp"

#include <algorithm>
#include <cmath>

#include "nest/schedule/unit_estimate.hpp"
#include "nest/term/axis.hpp"

namespace loopegg {
namespace {

using Copy = CpuShape::Copy;

class Cost {
public:
    Cost(const NaiveLoops& nest, const CpuShape& shape, const VectorMachine& m, const CpuCosts& costs) : nest_(nest), s_(shape), m_(m), of_(costs) {
        if (!s_.along && s_.along_by_compiler && s_.body[*s_.along_by_compiler] == 1 && whole_sums_inside())
            s_.along = s_.along_by_compiler, s_.lanes = std::min<std::int64_t>(m.lanes, nest.loops[*s_.along_by_compiler].extent), by_compiler_ = true;
        lanes_ = static_cast<double>(s_.lanes);
        if (s_.along && s_.lanes > m.lanes) {  // a vector that is longer than the machine's is several
            const std::int64_t several = (s_.lanes + m.lanes - 1) / m.lanes;
            s_.body[*s_.along] *= several, lanes_ /= static_cast<double>(several), waits_ = static_cast<double>(several - 1);
            ragged_ = s_.lanes % m.lanes != 0;
        }
        for (std::size_t i = 0; i < nest.loops.size(); ++i) {
            const auto extent = static_cast<double>(nest.loops[i].extent), body = static_cast<double>(s_.body[i]);
            instances_ *= extent;
            if (nest.loops[i].reduction)
                steps_ *= body, sum_ *= extent;
            else
                accumulators_ *= body;
        }
    }

    double total() const {
        double loads = 0, afar = 0, vectors = 0, numbers = 0, written_out = 0;
        bool windows = false;
        for (std::size_t r = 0; r < reads(); ++r) {
            const bool as_vectors = lanes_move(r);
            const double each = per_step(r);
            const double loaded = values(r);
            loads += loaded * (as_vectors || m_.lane_factors ? 1 : of_.memory_operand);
            if (as_vectors)
                vectors += each;
            else
                numbers += kept_numbers(r), written_out += loaded;
            windows = windows || (!as_vectors && two_windows(r));
            if (read_again(r) && bytes_of_tile(r) > of_.near_bytes) afar += as_vectors ? each : each / m_.lanes;
        }
        const double at_once = accumulators_ * (by_compiler_ ? of_.interleaved : 1);
        double cost = (nest_.sums() ? std::max(1.0, of_.enough_accumulators / at_once) : 1.0) + (of_.load * loads + of_.branch) / (steps_ * accumulators_) +
                      (in_order() ? of_.store : of_.scattered_store * (1 + of_.broken_rows / written_row())) / (s_.staged_output ? sum_ : steps_) +
                      of_.from_afar * afar / accumulators_;
        if (accumulators_ + vectors + numbers > m_.registers) cost += of_.too_few_registers;
        if (windows) cost += of_.windows_of_numbers;
        if (!m_.lane_factors) cost += std::clamp(of_.another_number * (written_out - of_.few_numbers), 0.0, of_.max_for_numbers);
        cost += of_.long_vectors * waits_;
        if (by_compiler_) cost *= of_.left_over;
        if (ragged_ && !(nest_.padded && s_.copy != Copy::none)) cost *= of_.put_together;  // a copied input may be loaded beyond its end
        const double rounds = std::ceil(s_.tasks / m_.cores);
        cost *= rounds * m_.cores / s_.tasks * m_.lanes / lanes_;
        if (s_.shared) cost += of_.start_of_cores * m_.lanes * m_.cores / instances_;
        if (nest_.padded)
            cost += copying() * (s_.copy == Copy::none ? 1 : elements_of(*nest_.padded) / instances_);
        else if (s_.gathers && nest_.scattered)
            cost += of_.copied_by_one * (s_.copy == Copy::whole ? s_.tasks : 1 / m_.cores) * elements_of(nest_.scattered->read) / instances_;
        else
            cost += scattered_steps() / accumulators_;
        if (s_.copy == Copy::rows) cost += of_.streamed * weights_again() / instances_;
        if (s_.weights_stay) cost += of_.weights_stay;
        if (other_is_contiguous()) cost -= of_.other_is_contiguous;
        return cost;
    }

private:
    bool whole_sums_inside() const {
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].reduction && s_.body[i] < nest_.loops[i].extent) return false;
        return true;
    }
    std::size_t reads() const { return nest_.loops.empty() ? 0 : nest_.loops[0].strides.size(); }
    std::size_t dimensions(std::size_t r) const { return nest_.loops.empty() ? 0 : nest_.loops[0].strides[r].size(); }
    bool lanes_move(std::size_t r) const { return s_.along && nest_.loops[*s_.along].moves(r); }
    std::int64_t lanes_stride(std::size_t r, std::size_t d) const { return s_.along ? nest_.loops[*s_.along].strides[r][d] : 0; }
    // How many iterations of an output loop are in the tile.
    std::int64_t elements(std::size_t loop) const { return static_cast<std::int64_t>(static_cast<double>(s_.body[loop]) * (loop == s_.along ? lanes_ : 1)); }
    double written_row() const {  // how many neighbours in memory a tile writes
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].contiguous && !nest_.loops[i].reduction) return static_cast<double>(s_.body[i]);
        return 1;
    }
    bool in_order() const { return s_.along && nest_.loops[*s_.along].contiguous; }

    // How many values `count` iterations of each loop read along one dimension, if no two read the same, and how far apart the first and the last value are.
    struct Walk {
        double values = 1, reach = 1;
    };
    template <class Count>
    Walk walk(std::size_t r, std::size_t d, Count count) const {
        Walk w;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (const std::int64_t stride = nest_.loops[i].strides[r][d]; stride > 0)
                w.values *= static_cast<double>(count(i)), w.reach += static_cast<double>(stride * (count(i) - 1));
        return w;
    }

    bool window(std::size_t r, std::size_t d) const {
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].reduction && nest_.loops[i].strides[r][d] > 0 && s_.body[i] > 1) return true;
        return false;
    }

    // How many loads one read needs in the unrolled body. Overlapping windows share values where these are rows of vectors, or numbers along the last
    // dimension.
    double values(std::size_t r) const {
        const bool as_vectors = lanes_move(r);
        double all = 1, most = 1, dearer = 1;
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (nest_.loops[i].moves(r)) most *= static_cast<double>(s_.body[i]);  // one loop may walk two dimensions
        for (std::size_t d = 0; d < dimensions(r); ++d) {
            const std::int64_t along = lanes_stride(r, d);
            if (along > 0 && window(r, d)) dearer *= of_.crossing_load;
            if (along > 0 && nest_.innermost[r] && *nest_.innermost[r] != d)
                dearer *= of_.picked_up * lanes_;  // no lane is a neighbour of another one
            else if (gathered(along))
                dearer *= by_compiler_ ? static_cast<double>(along) : of_.picked_up * lanes_;
            const Walk w = walk(r, d, [&](std::size_t i) { return s_.body[i]; });
            const bool shared = along == 0 && (as_vectors || d + 1 == dimensions(r));
            all *= shared ? std::min(w.values, w.reach) : w.values;
        }
        return std::min(all, most) * dearer;
    }

    // Lanes that are a few elements apart are loaded one by one. Where the compiler makes the vectors, it loads everything between and picks. Weights are
    // laid out for the lanes, so they are not meant here.
    static bool gathered(std::int64_t stride) { return stride > 1 && stride <= 4; }

    // Whether windows in two directions share numbers: these are too many for the registers, and compilers keep them there nevertheless.
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

    // Registers for the numbers that a step multiplies vectors by. Where windows overlap, compilers keep a row of numbers for the next steps.
    double kept_numbers(std::size_t r) const {
        if (m_.lane_factors) return std::ceil(per_step(r) / m_.lanes);
        if (dimensions(r) == 0 || !window(r, dimensions(r) - 1)) return accumulators_ > per_step(r) ? of_.fetched_ahead : 1;
        const std::size_t last = dimensions(r) - 1;
        const Walk row = walk(r, last, [&](std::size_t i) { return s_.body[i]; });
        return std::min(row.values, row.reach);
    }

    // How many distinct elements `count` iterations of each loop read.
    template <class Count>
    double read_elements(std::size_t r, Count count) const {
        double all = 1;
        for (std::size_t d = 0; d < dimensions(r); ++d) {
            const Walk w = walk(r, d, count);
            all *= std::min(w.values, w.reach);
        }
        return all;
    }

    // The bytes that a tile reads of an operand in its whole sum.
    double bytes_of_tile(std::size_t r) const {
        return sizeof(float) * read_elements(r, [&](std::size_t i) { return nest_.loops[i].reduction ? nest_.loops[i].extent : elements(i); });
    }

    // The elements that all iterations read of an operand, with its padding.
    double elements_of(std::size_t r) const {
        return read_elements(r, [&](std::size_t i) { return nest_.loops[i].extent; });
    }

    // Whether other tiles read the same elements.
    bool read_again(std::size_t r) const {
        for (std::size_t i = 0; i < nest_.loops.size(); ++i)
            if (const NaiveLoop& l = nest_.loops[i]; !l.reduction && !l.moves(r) && l.extent > elements(i)) return true;
        return false;
    }

    // What it costs a step of the sums in a tile that the input is scattered.
    double scattered_steps() const {
        const auto& sum = nest_.scattered;
        if (!sum || sum->steps <= of_.pages_at_hand) return 0;
        double runs = 1;
        for (std::size_t d = 0; d + 1 < dimensions(sum->read); ++d)
            for (std::size_t i = 0; i < nest_.loops.size(); ++i)
                if (!nest_.loops[i].reduction && nest_.loops[i].strides[sum->read][d] > 0) runs *= static_cast<double>(s_.body[i]);
        return of_.another_page * runs * std::min(1.0, static_cast<double>(sum->bytes_apart) / of_.page_bytes);
    }

    double copying() const {
        switch (s_.copy) {
            case Copy::none: return of_.tested;
            case Copy::once: return of_.copied_by_one;
            case Copy::rows: return of_.copied_twice / static_cast<double>(s_.rows);
            case Copy::own: return of_.copied_near;
            case Copy::whole: return of_.copied_by_one * s_.tasks;
        }
        return 0;
    }

    // Weights that each piece but the first reads once more, where these weights do not stay near.
    double weights_again() const {
        double all = 0;
        for (std::size_t r = 0; r < reads(); ++r)
            if (const double n = elements_of(r); r != nest_.padded && n * sizeof(float) > of_.far_bytes) all += n * (s_.tasks - 1);
        return all;
    }

    // Whether the other loop of the tile, along which the lanes do not run, is contiguous.
    bool other_is_contiguous() const {
        bool any = false;
        for (std::size_t i = nest_.loops.size(); i-- > 0;) {
            const NaiveLoop& l = nest_.loops[i];
            if (l.reduction || i == s_.along) continue;
            if (s_.body[i] > 1) return l.contiguous;
            any = any || l.contiguous;
        }
        return any;
    }

    const NaiveLoops& nest_;
    CpuShape s_;
    const VectorMachine& m_;
    const CpuCosts& of_;
    double steps_ = 1, sum_ = 1;  // multiply-adds of an accumulator: in the unrolled body, in all
    double accumulators_ = 1, instances_ = 1;
    double lanes_ = 1;  // of one vector of the machine
    double waits_ = 0;  // registers of a long vector, less one
    bool by_compiler_ = false, ragged_ = false;
};

// The naive loops that an axis walks, and how far each.
struct LoopDigit {
    std::optional<std::size_t> loop;
    std::int64_t extent;
};
void digits_of(const NaiveLoops& nest, const Term& axis, std::vector<LoopDigit>& out) {
    for (Term t = axis;; t = Term(t[0])) {
        const auto found = std::find_if(nest.loops.begin(), nest.loops.end(), [&](const NaiveLoop& l) { return l.axis == t; });
        if (found != nest.loops.end()) return out.push_back({static_cast<std::size_t>(found - nest.loops.begin()), axis_extent(axis)});
        if (t == axis && t.is("pair", 2)) {
            digits_of(nest, t[0], out);
            return digits_of(nest, t[1], out);
        }
        if (!t.is("quo", 2) && !t.is("rem", 2) && !t.is("span", 3)) return out.push_back({{}, axis_extent(axis)});
    }
}

class CpuReading {
public:
    CpuReading(const NaiveLoops& nest, const Term& schedule) : nest_(nest), left_(nest.loops.size()) {
        shape.body.assign(nest.loops.size(), 1);
        for (std::size_t i = 0; i < nest.loops.size(); ++i) left_[i] = nest.loops[i].extent;
        for (Term t = schedule; t.size() > 0; t = Term(t[t.size() - 1])) {
            if (t.op().text() == "stage")
                stage(t[0]);
            else
                loop(t);
        }
        for (const LoopDigit& d : shared_)  // another loop would be shared if the weights did not decide
            for (std::size_t i = 0; d.loop && d.loop == shape.along && i < *d.loop; ++i)
                shape.weights_stay = shape.weights_stay || (!nest.loops[i].reduction && nest.loops[i].extent > shape.body[i]);
    }

    CpuShape shape;

private:
    void loop(const Term& t) {
        const std::string& kind = t.op().text();
        std::vector<LoopDigit> digits;
        digits_of(nest_, t[t.size() - 2], digits);
        const std::string how = kind == "partial" ? t[0].op().text() : "";
        const bool parallel = kind == "par" || how == "par", vectors = kind == "vec" || how == "vec";
        if (kind == "at" || kind == "partial" || parallel) shape.body.assign(shape.body.size(), 1), shape.along_by_compiler.reset();
        if (kind == "partial") shape.staged_output = true;  // partial sums stay in registers until all are done
        for (const LoopDigit& d : digits) {
            if (parallel) shape.tasks *= static_cast<double>(d.extent), shape.shared = true, shared_.push_back(d);
            if (!d.loop) continue;
            left_[*d.loop] = std::max<std::int64_t>(1, left_[*d.loop] / d.extent);
            if (kind == "unroll") shape.body[*d.loop] *= d.extent;
            if (vectors) shape.along = d.loop, shape.lanes = d.extent;
            if (kind == "at" && digits.size() == 1 && nest_.loops[*d.loop].contiguous) shape.along_by_compiler = d.loop;
        }
    }

    void stage(const Term& buffer) {
        const std::string text = to_string(buffer);
        if (text == "O" || text == "(local O)") shape.staged_output = true;
        if (text != "I" && text != "(local I)") return;
        shape.gathers = !nest_.padded && !shared_.empty();
        shape.copy = shared_.empty() ? Copy::once : Copy::own;
        for (const LoopDigit& d : shared_) {
            if (!d.loop || nest_.loops[*d.loop].weights_only)
                shape.copy = Copy::whole;
            else if (shape.copy != Copy::whole && d.loop == nest_.row_loop())
                shape.copy = Copy::rows, shape.rows = left_[*d.loop];
        }
    }

    const NaiveLoops& nest_;
    std::vector<std::int64_t> left_;  // by naive loop: iterations that no loop so far walks
    std::vector<LoopDigit> shared_;
};

// The lists of loops of a schedule: one for each way from its outermost loop to a `done`.
std::vector<Term> lists_of(const Term& schedule) {
    if (schedule.size() == 0) return {schedule};
    if (schedule.is("cat", 2)) {
        std::vector<Term> all = lists_of(schedule[0]);
        for (Term& t : lists_of(schedule[1])) all.push_back(std::move(t));
        return all;
    }
    std::vector<Term> all;
    for (const Term& rest : lists_of(schedule[schedule.size() - 1])) {
        std::vector<Term> children(schedule.children().begin(), schedule.children().end());
        children.back() = rest;
        all.push_back(Term(schedule.op(), std::move(children)));
    }
    return all;
}

double instances_of(const Term& list) {
    double instances = 1;
    for (Term t = list; t.size() > 0; t = Term(t[t.size() - 1]))
        if (!t.is("stage", 2)) instances *= static_cast<double>(axis_extent(t[t.size() - 2]));
    return instances;
}

// The cost of a schedule of which units multiply all parts; each part counts as much as it has instances.
std::optional<double> cost_by_units(const NaiveLoops& nest, const Term& schedule, const VectorMachine& machine) {
    double all = 0, cost = 0;
    for (const Term& list : lists_of(schedule)) {
        const auto shape = unit_shape(nest, list);
        const MatrixUnit* unit = shape ? unit_for(*shape, machine.units) : nullptr;
        if (!unit) return {};
        all += instances_of(list), cost += instances_of(list) * unit_cost(nest, *shape, *unit, machine);
    }
    return cost / all;
}

}  // namespace

double cpu_cost(const NaiveLoops& nest, const CpuShape& shape, const VectorMachine& machine, const CpuCosts& costs) {
    return Cost(nest, shape, machine, costs).total();
}

double cpu_cost(const NaiveLoops& nest, std::span<const CpuPart> parts, const VectorMachine& machine, const CpuCosts& costs) {
    double all = 0, cost = 0;
    for (const CpuPart& part : parts) all += part.instances, cost += part.instances * cpu_cost(nest, part.shape, machine, costs);
    return cost / all;
}

double cpu_cost(const NaiveLoops& nest, const Term& schedule, const VectorMachine& machine) {
    if (const auto cost = machine.units.empty() ? std::nullopt : cost_by_units(nest, schedule, machine)) return *cost;
    return cpu_cost(nest, cpu_parts(nest, schedule), machine);
}

std::vector<CpuPart> cpu_parts(const NaiveLoops& nest, const Term& schedule) {
    std::vector<CpuPart> parts;
    for (const Term& list : lists_of(schedule)) {
        parts.push_back({CpuReading(nest, list).shape, instances_of(list)});
    }
    return parts;
}

}  // namespace loopegg
