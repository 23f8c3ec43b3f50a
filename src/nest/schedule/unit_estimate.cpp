#include "nest/schedule/unit_estimate.hpp"

#include <algorithm>
#include <cmath>

#include "nest/term/axis.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

// In cycles: an element that is copied, or stored, as one of a vector or alone.
constexpr double in_vectors = 0.4, one_by_one = 1.5, start_of_cores = 5000;
// In bytes: what the first cache of a core keeps, and all of its own caches. In cycles: a byte from beyond them, while
// other cores read, too. And how many times
// as long as from the first cache it takes to load a tile from the second one.
constexpr double near_bytes = 32 * 1024, own_bytes = 1 << 20, from_afar = 0.25, second_cache = 3;

std::optional<std::size_t> loop_of(const NaiveLoops& nest, Term axis) {
    for (;; axis = Term(axis[0])) {
        const auto found = std::find_if(nest.loops.begin(), nest.loops.end(), [&](const NaiveLoop& l) { return l.axis == axis; });
        if (found != nest.loops.end()) return static_cast<std::size_t>(found - nest.loops.begin());
        if (!axis.is("quo", 2) && !axis.is("rem", 2) && !axis.is("span", 3)) return {};
    }
}

double input_elements(const NaiveLoops& nest) {
    for (std::size_t r = 0; r < nest.innermost.size(); ++r) {
        if (!nest.innermost[r]) continue;  // a weight
        double all = 1;
        for (std::size_t d = 0; d < nest.loops[0].strides[r].size(); ++d) {
            double most = 1, reach = 1;
            for (const NaiveLoop& l : nest.loops)
                if (const std::int64_t stride = l.strides[r][d]; stride > 0)
                    most *= static_cast<double>(l.extent), reach += static_cast<double>(stride * (l.extent - 1));
            all *= std::min(most, reach);
        }
        return all;
    }
    return 0;
}

double weight_bytes(const NaiveLoops& nest, std::size_t read, const MatrixUnit& unit) {
    double elements = 1;
    for (const NaiveLoop& l : nest.loops)
        if (l.moves(read)) elements *= static_cast<double>(l.extent);
    return elements * sizeof(float) / static_cast<double>(unit.packed);
}

// The cycles in which the operands of all tiles that are summed up at once are loaded, for one step of their sums.
double loads(const NaiveLoops& nest, const UnitShape& s, const MatrixUnit& unit, double sum) {
    double all = 0;
    for (std::size_t r = 0; r < 2; ++r) {
        const bool of_columns = s.columns_loop && r < nest.loops[*s.columns_loop].strides.size() && nest.loops[*s.columns_loop].moves(r);
        const double rows = of_columns ? s.depth / static_cast<double>(unit.depth) : s.rows / static_cast<double>(unit.rows);
        const bool weight = r < nest.innermost.size() && !nest.innermost[r];
        const double reused = s.loaded[r] * (of_columns ? s.columns : s.rows) * sum * sizeof(float) / static_cast<double>(unit.packed);
        all += unit.load * s.loaded[r] * rows * (weight && reused > near_bytes ? second_cache : 1);
    }
    return all;
}

// How long the cores together wait for weights from beyond their caches.
double waits_for_weights(const NaiveLoops& nest, const UnitShape& s, const MatrixUnit& unit, const VectorMachine& m) {
    double all = 0;
    for (std::size_t r = 0; r < nest.innermost.size(); ++r) {
        if (nest.innermost[r]) continue;
        const double bytes = weight_bytes(nest, r, unit), readers = s.own_weights ? 1 : std::min<double>(m.cores, s.tasks);
        all += from_afar * bytes * readers * (s.own_weights || bytes <= own_bytes ? 1 : std::ceil(s.tasks / m.cores));
    }
    return all;
}

}  // namespace

double unit_cost(const NaiveLoops& nest, const UnitShape& s, const MatrixUnit& unit, const VectorMachine& m) {
    double instances = 1, sum = 1;
    for (const NaiveLoop& l : nest.loops) {
        instances *= static_cast<double>(l.extent);
        if (l.reduction) sum *= static_cast<double>(l.extent);
    }
    // Registers for tiles take as long for few columns as for many. Vectors are as many as the tile has.
    const double part = unit.forms.empty() ? 1 : s.columns / static_cast<double>(unit.columns) * s.depth / static_cast<double>(unit.depth);
    const double busy = unit.cycles * s.rows / static_cast<double>(unit.rows) * part;
    const double cycles = std::max({busy, unit.latency / s.own, loads(nest, s, unit, sum) / s.own});
    const double rounds = std::ceil(s.tasks / m.cores);
    double each = cycles / (s.rows * s.columns * s.depth) * rounds * m.cores / s.tasks;
    const bool rows_of_output = s.columns_loop && nest.loops[*s.columns_loop].contiguous;
    const bool rows_of_input = s.columns_loop && !nest.loops[*s.columns_loop].weights_only;
    each += input_elements(nest) * s.copies * (rows_of_input ? in_vectors : one_by_one) / instances;
    each += (rows_of_output ? in_vectors : one_by_one) / sum;
    each += waits_for_weights(nest, s, unit, m) / instances;
    if (s.tasks > 1) each += start_of_cores * (s.copied_together ? 2 : 1) / instances;
    return each * 2 * m.lanes;  // two vectors of multiply-adds in a cycle are the unit of costs
}

std::optional<UnitShape> unit_shape(const NaiveLoops& nest, const Term& schedule) {
    UnitShape s;
    bool shared = false, of_input = false;
    std::vector<Term> own;
    for (Term t = schedule; t.size() > 0; t = Term(t[t.size() - 1])) {
        if (t.is("cat", 2)) return {};
        if (t.is("stage", 2)) {
            if (to_string(t[0]) == "I" && !shared) s.copied_together = true;
            continue;
        }
        const Term axis = t[t.size() - 2];
        const auto loop = loop_of(nest, axis);
        if (t.is("par", 2)) {
            s.tasks *= static_cast<double>(axis_extent(axis)), shared = true;
            of_input = of_input || (loop && !nest.loops[*loop].weights_only);
            s.own_weights = !of_input;
        }
        if (t.is("at", 2)) own.clear();
        if (t.is("unroll", 2)) own.push_back(axis);
        if (!t.is("bind", 3)) continue;
        if (!is_tensor_place(t[0]) || !t[2].is("unroll", 2) || !t[2][1].is("unroll", 2)) return {};
        s.kind = t[0].op().text().substr(tensor_place.size());
        s.rows = static_cast<double>(axis_extent(axis)), s.columns = static_cast<double>(axis_extent(t[2][1][0])), s.columns_loop = loop_of(nest, t[2][1][0]);
        s.depth = static_cast<double>(axis_extent(t[2][0]));
        if (t[2][1][1].is("unroll", 2)) s.depth *= static_cast<double>(axis_extent(t[2][1][1][0]));
        for (const Term& o : own) {
            const auto of = loop_of(nest, o);
            s.own *= static_cast<double>(axis_extent(o));
            for (std::size_t r = 0; r < 2 && of && r < nest.loops[*of].strides.size(); ++r)
                if (nest.loops[*of].moves(r)) s.loaded[r] *= static_cast<double>(axis_extent(o));
        }
        s.copies = s.copied_together || of_input ? 1 : s.tasks;
        return s;
    }
    return {};
}

const MatrixUnit* unit_for(const UnitShape& s, const std::vector<MatrixUnit>& units) {
    const auto fits = [&](const MatrixUnit& u) {
        return u.operands == s.kind && s.rows <= static_cast<double>(u.rows) && s.columns <= static_cast<double>(u.columns) &&
               s.depth <= static_cast<double>(u.depth);
    };
    const auto found = std::find_if(units.begin(), units.end(), fits);
    return found == units.end() ? nullptr : &*found;
}

}  // namespace loopegg
