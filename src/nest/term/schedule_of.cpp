// A naive schedule over a graph domain.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"
#include "nest/domain/domain.hpp"

namespace loopegg {
namespace {

Term digit_axis(const Term& leaf, std::int64_t extent, std::int64_t stride, std::int64_t limit) { return to_term(AxisDigit{leaf, extent, stride, limit}); }

// The loops of one part if all conditions are about digits into which the axes can be split; none otherwise.
std::optional<std::vector<Term>> digit_loops(const Statement& s, const DomainPart& part) {
    std::map<std::string, std::set<std::int64_t>> cuts;  // the strides at which an axis is split
    std::map<std::string, std::int64_t> extents;
    for (const Iterator& it : s.axes) extents[it.name] = it.extent, cuts[it.name] = {1, it.extent};
    auto cut = [&](const Digit& d) { cuts[d.axis].insert(d.stride), cuts[d.axis].insert(d.stride * d.radix); };
    for (const DigitPair& d : part.diagonals) cut(d.first), cut(d.second);
    // A range whose bounds are whole blocks of lower digits is a range of the digit above them.
    std::vector<DigitRange> ranges = part.ranges;
    for (bool changed = true; changed;) {
        changed = false;
        for (DigitRange& r : ranges) {
            for (std::int64_t c : cuts[r.digit.axis]) {
                std::int64_t below = c / r.digit.stride;
                if (c <= r.digit.stride || c % r.digit.stride != 0 || below >= r.digit.radix || r.digit.radix % below != 0 || r.lo % below != 0 ||
                    r.hi % below != 0)
                    continue;
                r = {{r.digit.axis, c, r.digit.radix / below}, r.lo / below, r.hi / below};
                changed = true;
                break;
            }
            auto before = cuts[r.digit.axis].size();
            cut(r.digit);
            changed = changed || cuts[r.digit.axis].size() != before;
        }
    }
    std::vector<Term> loops;
    std::set<std::pair<std::string, std::int64_t>> taken;  // digits by axis and stride
    auto is_elementary = [&](const Digit& d) {
        auto it = cuts[d.axis].find(d.stride);
        return *std::next(it) == d.stride * d.radix;
    };
    for (auto& [axis, at] : cuts)
        for (auto it = at.begin(); std::next(it) != at.end(); ++it)
            if (*std::next(it) % *it != 0) return {};
    for (const DigitPair& d : part.diagonals) {
        if (!is_elementary(d.first) || !is_elementary(d.second)) return {};
        auto axis = [&](const Digit& x) { return digit_axis(axis_leaf(x.axis, extents[x.axis]), extents[x.axis], 1, x.stride * x.radix); };
        if (!taken.emplace(d.first.axis, d.first.stride).second || !taken.emplace(d.second.axis, d.second.stride).second) return {};
        loops.push_back(Term("diag", {Term(d.first.radix), axis(d.first), axis(d.second)}));
    }
    for (const DigitRange& r : ranges)
        if (!is_elementary(r.digit) || taken.contains({r.digit.axis, r.digit.stride})) return {};
    for (const Iterator& it : s.axes) {
        auto& at = cuts[it.name];
        for (auto c = at.rbegin(); std::next(c) != at.rend(); ++c) {
            std::int64_t limit = *c, stride = *std::next(c);
            if (taken.contains({it.name, stride})) continue;
            Term axis = digit_axis(axis_leaf(it.name, it.extent), it.extent, stride, limit);
            std::int64_t lo = 0, hi = limit / stride;
            for (const DigitRange& r : ranges)
                if (r.digit.axis == it.name && r.digit.stride == stride) lo = std::max(lo, r.lo), hi = std::min(hi, r.hi);
            if (lo >= hi) return std::nullopt;
            loops.push_back(lo == 0 && hi == limit / stride ? axis : Term("span", {axis, Term(lo), Term(hi)}));
        }
    }
    return loops;
}

Term list(const std::vector<Term>& loops) {
    Term sched("done");
    for (std::size_t i = loops.size(); i-- > 0;) sched = Term("at", {loops[i], sched});
    return sched;
}

// The part as strided boxes; each run lo, lo+stride ... is a span of a split that starts at its first value.
std::vector<Term> box_schedules(const Statement& s, const DomainPart& part) {
    std::vector<Term> out;
    for (const Box& box : boxes(Domain{{part}, Restore::none}, graph_axes(s))) {
        std::vector<Term> loops;
        for (std::size_t i = 0; i < s.axes.size(); ++i) {
            const Iterator& it = s.axes[i];
            const StridedRun& run = box.runs[i];
            Term leaf = axis_leaf(it.name, it.extent);
            if (it.extent == 1) continue;
            std::int64_t hi = run.lo + (run.count - 1) * run.stride + 1;
            Term walked = run.lo == 0 && hi == it.extent ? leaf : Term("span", {leaf, Term(run.lo), Term(hi)});
            if (run.stride == 1 || run.count == 1) {
                loops.push_back(walked);
                continue;
            }
            loops.push_back(Term("quo", {walked, Term(run.stride)}));
            loops.push_back(Term("span", {Term("rem", {walked, Term(run.stride)}), Term(std::int64_t{0}), Term(std::int64_t{1})}));
        }
        out.push_back(list(loops));
    }
    return out;
}

}  // namespace

Term schedule_of(const Statement& statement, const Domain& domain) {
    if (domain.whole()) return naive_schedule(statement);
    std::vector<Term> parts;
    for (const DomainPart& part : domain.parts) {
        if (auto loops = digit_loops(statement, part))
            parts.push_back(list(*loops));
        else
            for (Term& t : box_schedules(statement, part)) parts.push_back(std::move(t));
    }
    require(!parts.empty(), "a domain has instances");
    Term sched = parts.back();
    for (std::size_t i = parts.size() - 1; i-- > 0;) sched = Term("cat", {parts[i], sched});
    return sched;
}

}  // namespace loopegg
