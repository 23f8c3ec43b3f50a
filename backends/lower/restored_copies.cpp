#include "backends/lower/restored_copies.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"

namespace loopegg {
namespace {

using Values = std::vector<std::int64_t>;

// The digits of an axis that a condition may name: the axis itself, and the digits that the domain names.
std::vector<Digit> digits_of(const Axis& axis, const Domain& domain) {
    std::vector<Digit> all{{axis.name, 1, axis.extent}};
    auto add = [&](const Digit& d) {
        if (d.axis == axis.name && std::find(all.begin(), all.end(), d) == all.end()) all.push_back(d);
    };
    for (const DomainPart& part : domain.parts) {
        for (const DigitRange& r : part.ranges) add(r.digit);
        for (const DigitPair& p : part.diagonals) add(p.first), add(p.second);
    }
    return all;
}

// Ranges of digits that hold for the given values of the axis and for no others.
std::optional<std::vector<DigitRange>> ranges_for(const std::set<std::int64_t>& values, const Axis& axis, const Domain& domain) {
    std::vector<DigitRange> all;
    for (const Digit& d : digits_of(axis, domain)) {
        DigitRange r{d, d.radix, 0};
        for (std::int64_t v : values) r.lo = std::min(r.lo, d.of(v)), r.hi = std::max(r.hi, d.of(v) + 1);
        if (r.lo > 0 || r.hi < d.radix) all.push_back(r);
    }
    auto exact = [&](const std::vector<DigitRange>& ranges) {
        for (std::int64_t v = 0; v < axis.extent; ++v)
            if (std::all_of(ranges.begin(), ranges.end(), [&](const DigitRange& r) { return r.lo <= r.digit.of(v) && r.digit.of(v) < r.hi; }) !=
                values.contains(v))
                return false;
        return true;
    };
    if (!exact(all)) return {};
    for (std::size_t i = 0; i < all.size();) {  // without those that the others imply
        std::vector<DigitRange> fewer = all;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (exact(fewer))
            all = std::move(fewer);
        else
            ++i;
    }
    return all;
}

// The same for a set of elements, which must be a product of one set for each axis.
std::optional<std::vector<DigitRange>> ranges_for(const std::set<Values>& elements, const std::vector<Axis>& axes, const Domain& domain) {
    std::vector<DigitRange> all;
    std::size_t product = 1;
    for (std::size_t a = 0; a < axes.size(); ++a) {
        std::set<std::int64_t> values;
        for (const Values& e : elements) values.insert(e[a]);
        product *= values.size();
        const auto ranges = ranges_for(values, axes[a], domain);
        if (!ranges) return {};
        all.insert(all.end(), ranges->begin(), ranges->end());
    }
    return product == elements.size() ? std::optional(all) : std::nullopt;
}

// Copies at equal distances become one copy with a count.
std::vector<RestoredCopy> with_counts(const std::vector<RestoredCopy>& all) {
    std::vector<RestoredCopy> r;
    for (const RestoredCopy& c : all) {
        if (!r.empty() && !r.back().itself() && !c.itself() && r.back().always == c.always && r.back().when == c.when) {
            RestoredCopy& last = r.back();
            Values step(c.offset.size()), next(c.offset.size());
            for (std::size_t a = 0; a < step.size(); ++a) step[a] = c.offset[a] - last.offset[a], next[a] = last.offset[a] + last.step[a] * last.count;
            if (last.count == 1) {
                last.step = step, last.count = 2;
                continue;
            }
            if (next == c.offset) {
                ++last.count;
                continue;
            }
        }
        r.push_back(c);
    }
    return r;
}

}  // namespace

bool RestoredCopy::itself() const {
    return std::all_of(offset.begin(), offset.end(), [](std::int64_t o) { return o == 0; });
}

RestoredCopies restored_copies(const Domain& domain, const std::vector<Axis>& axes) {
    const std::vector<Axis> named = axes_named_by(domain, axes);
    RestoredCopies result;
    for (const Axis& a : named)
        if (!a.reduction) result.axes.push_back(a);
    Domain repeated = domain;
    if (domain.restore == Restore::zero) repeated.restore = Restore::repeat;  // the element that `repeat` would copy writes the zero
    const std::vector<std::int64_t> sources = output_sources(repeated, named);
    auto element = [&](std::int64_t index) {
        Values v(result.axes.size());
        for (std::size_t a = v.size(); a-- > 0; index /= result.axes[a].extent) v[a] = index % result.axes[a].extent;
        return v;
    };
    std::map<Values, std::set<Values>> by_offset;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (sources[i] < 0) throw UserError("an output of this domain cannot be restored: no computed output represents it");
        const Values to = element(static_cast<std::int64_t>(i)), from = element(sources[i]);
        Values offset(to.size());
        for (std::size_t a = 0; a < to.size(); ++a) offset[a] = to[a] - from[a];
        by_offset[offset].insert(from);
    }
    const std::set<Values> computed = by_offset[Values(result.axes.size(), 0)];
    for (const auto& [offset, from] : by_offset) {
        const bool always = from == computed;
        auto add = [&](const std::set<Values>& some) {
            if (some.empty()) return true;
            const auto when = ranges_for(some, result.axes, domain);
            if (when) result.copies.push_back({offset, Values(offset.size(), 0), 1, *when, always && some == from});
            return when.has_value();
        };
        if (add(from)) continue;
        std::set<Values> left = from;  // part by part
        for (const DomainPart& part : domain.parts) {
            std::vector<std::string> names;
            for (const Axis& a : result.axes) names.push_back(a.name);
            const std::vector<char> written = projection(Domain{{part}, Restore::none}, named, names);
            std::set<Values> here;
            for (std::size_t i = 0; i < written.size(); ++i)
                if (const Values v = element(static_cast<std::int64_t>(i)); written[i] && left.erase(v)) here.insert(v);
            if (!add(here)) throw UserError("the restored outputs of this domain have no simple form: " + to_string(domain));
        }
    }
    result.copies = with_counts(result.copies);
    return result;
}

}  // namespace loopegg
