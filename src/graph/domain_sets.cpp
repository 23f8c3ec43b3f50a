#include "graph/domain_sets.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"

namespace loopegg {
namespace {

using Values = std::vector<std::int64_t>;

std::size_t place_of(const std::string& axis, const std::vector<Axis>& axes) {
    auto found = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == axis; });
    require(found != axes.end(), "a checked domain names an unknown axis");
    return static_cast<std::size_t>(found - axes.begin());
}

std::map<std::int64_t, Values> by_digit(const Values& values, const Digit& digit) {
    std::map<std::int64_t, Values> buckets;
    for (std::int64_t v : values) buckets[digit.of(v)].push_back(v);
    return buckets;
}

// Splits each set along the blocks of one diagonal.
std::vector<ProductSet> along(const DigitPair& pair, std::vector<ProductSet> sets, const std::vector<Axis>& axes) {
    std::size_t a = place_of(pair.first.axis, axes), b = place_of(pair.second.axis, axes);
    std::vector<ProductSet> out;
    for (ProductSet& set : sets) {
        if (a == b) {
            std::erase_if(set.values[a], [&](std::int64_t v) { return pair.first.of(v) != pair.second.of(v); });
            if (!set.values[a].empty()) out.push_back(std::move(set));
            continue;
        }
        auto firsts = by_digit(set.values[a], pair.first), seconds = by_digit(set.values[b], pair.second);
        for (auto& [digit, first] : firsts)
            if (auto second = seconds.find(digit); second != seconds.end()) {
                out.push_back(set);
                out.back().values[a] = std::move(first);
                out.back().values[b] = second->second;
            }
    }
    return out;
}

std::vector<ProductSet> sets_of(const DomainPart& part, std::size_t index, const std::vector<Axis>& axes) {
    ProductSet all{std::vector<Values>(axes.size()), index};
    for (std::size_t i = 0; i < axes.size(); ++i)
        for (std::int64_t v = 0; v < axes[i].extent; ++v) all.values[i].push_back(v);
    for (const DigitRange& r : part.ranges) {
        Values& values = all.values[place_of(r.digit.axis, axes)];
        std::erase_if(values, [&](std::int64_t v) { return r.digit.of(v) < r.lo || r.digit.of(v) >= r.hi; });
        if (values.empty()) return {};
    }
    std::vector<ProductSet> sets{std::move(all)};
    for (const DigitPair& pair : part.diagonals) sets = along(pair, std::move(sets), axes);
    return sets;
}

std::int64_t euclidean(std::int64_t a, std::int64_t m) { return (a % m + m) % m; }

// Visits every tuple of a product.
template <class Visit>
void each(const std::vector<const Values*>& factors, Visit visit) {
    std::vector<std::size_t> at(factors.size(), 0);
    std::vector<std::int64_t> tuple(factors.size());
    while (true) {
        for (std::size_t i = 0; i < factors.size(); ++i) tuple[i] = (*factors[i])[at[i]];
        visit(tuple);
        std::size_t i = factors.size();
        while (i > 0 && ++at[i - 1] == factors[i - 1]->size()) at[--i] = 0;
        if (i == 0) return;
    }
}

}  // namespace

std::vector<ProductSet> product_sets(const Domain& domain, const std::vector<Axis>& axes) {
    if (domain.whole()) return sets_of({}, 0, axes);
    std::vector<ProductSet> all;
    for (std::size_t i = 0; i < domain.parts.size(); ++i)
        for (ProductSet& set : sets_of(domain.parts[i], i, axes)) all.push_back(std::move(set));
    return all;
}

std::vector<StridedRun> as_runs(const std::vector<std::int64_t>& sorted) {
    std::vector<StridedRun> runs;
    for (std::size_t i = 0; i < sorted.size();) {
        StridedRun run{sorted[i], 1, 1};
        if (i + 1 < sorted.size()) {
            run.stride = sorted[i + 1] - sorted[i];
            while (i + static_cast<std::size_t>(run.count) < sorted.size() &&
                   sorted[i + static_cast<std::size_t>(run.count)] == run.lo + run.count * run.stride)
                ++run.count;
        }
        i += static_cast<std::size_t>(run.count);
        runs.push_back(run);
    }
    return runs;
}

std::vector<Box> boxes(const Domain& domain, const std::vector<Axis>& axes) {
    std::vector<Box> all;
    for (const ProductSet& set : product_sets(domain, axes)) {
        std::vector<Box> made{{{}, set.part}};
        for (const Values& values : set.values) {
            std::vector<Box> wider;
            for (const Box& box : made)
                for (const StridedRun& run : as_runs(values)) {
                    wider.push_back(box);
                    wider.back().runs.push_back(run);
                }
            made = std::move(wider);
        }
        all.insert(all.end(), made.begin(), made.end());
    }
    return all;
}

std::int64_t instance_count(const Domain& domain, const std::vector<Axis>& axes) {
    std::vector<Axis> named = axes_named_by(domain, axes);
    std::int64_t others = 1, count = 0;
    for (const Axis& axis : axes)
        if (std::find(named.begin(), named.end(), axis) == named.end()) others *= axis.extent;
    for (const ProductSet& set : product_sets(domain, named)) {
        std::int64_t product = 1;
        for (const Values& values : set.values) product *= static_cast<std::int64_t>(values.size());
        count += product;
    }
    return count * others;
}

std::int64_t projected_count(const Domain& domain, const std::vector<Axis>& axes, const std::vector<std::string>& onto) {
    const std::vector<Axis> named = axes_named_by(domain, axes);
    std::int64_t others = 1;
    std::vector<std::string> restricted;
    for (const std::string& name : onto) {
        const bool is_named = std::any_of(named.begin(), named.end(), [&](const Axis& a) { return a.name == name; });
        if (is_named)
            restricted.push_back(name);
        else
            others *= axes[place_of(name, axes)].extent;
    }
    if (restricted.empty()) return others;
    if (domain.parts.size() > 1) {  // what two parts project to may overlap
        const std::vector<char> mask = projection(domain, named, restricted);
        return others * std::count(mask.begin(), mask.end(), 1);
    }
    std::set<std::vector<Values>> seen;  // of one part, two blocks project to the same product or to disjoint ones
    std::int64_t count = 0;
    for (const ProductSet& set : product_sets(domain, named)) {
        std::int64_t product = 1;
        std::vector<Values> key;
        for (const std::string& name : restricted) {
            key.push_back(set.values[place_of(name, named)]);
            product *= static_cast<std::int64_t>(key.back().size());
        }
        if (seen.insert(std::move(key)).second) count += product;
    }
    return count * others;
}

std::vector<char> projection(const Domain& domain, const std::vector<Axis>& axes, const std::vector<std::string>& onto) {
    std::vector<std::size_t> places;
    std::int64_t size = 1;
    for (const std::string& name : onto) {
        places.push_back(place_of(name, axes));
        size *= axes[places.back()].extent;
    }
    std::vector<char> mask(static_cast<std::size_t>(size), domain.whole());
    if (domain.whole()) return mask;
    std::set<std::vector<Values>> seen;  // blocks that differ only in other axes project to one product
    for (const ProductSet& set : product_sets(domain, axes)) {
        std::vector<Values> key;
        for (std::size_t p : places) key.push_back(set.values[p]);
        auto [factors, fresh] = seen.insert(std::move(key));
        if (!fresh) continue;
        std::vector<const Values*> pointers;
        for (const Values& values : *factors) pointers.push_back(&values);
        each(pointers, [&](const std::vector<std::int64_t>& tuple) {
            std::int64_t index = 0;
            for (std::size_t i = 0; i < tuple.size(); ++i) index = index * axes[places[i]].extent + tuple[i];
            mask[static_cast<std::size_t>(index)] = 1;
        });
    }
    return mask;
}

std::vector<std::int64_t> output_sources(const Domain& domain, const std::vector<Axis>& axes) {
    if (domain.restore == Restore::pointwise)
        throw UserError("outputs that come back pointwise are those of a second nest, a 1x1 convolution: this one has no copies of them");
    std::vector<Axis> outputs;
    std::vector<std::string> names;
    for (const Axis& axis : axes)
        if (!axis.reduction) outputs.push_back(axis), names.push_back(axis.name);
    std::vector<char> written = projection(domain, axes, names);
    auto index_of = [&](const Values& tuple) {
        std::int64_t index = 0;
        for (std::size_t i = 0; i < tuple.size(); ++i) index = index * outputs[i].extent + tuple[i];
        return index;
    };
    auto output_place = [&](const Digit& d) {
        for (std::size_t i = 0; i < outputs.size(); ++i)
            if (outputs[i].name == d.axis) return i;
        return outputs.size();
    };
    auto replace_digit = [](std::int64_t value, const Digit& d, std::int64_t digit) { return value + (digit - d.of(value)) * d.stride; };

    // What the part makes of an output that nobody computes.
    auto moved = [&](const DomainPart& part, Values tuple) {
        for (const DigitRange& r : part.ranges)
            if (std::size_t i = output_place(r.digit); i < outputs.size())
                tuple[i] = replace_digit(tuple[i], r.digit, r.lo + euclidean(r.digit.of(tuple[i]) - r.lo, r.hi - r.lo));
        for (const DigitPair& p : part.diagonals)
            if (std::size_t i = output_place(p.first), j = output_place(p.second); i < outputs.size() && j < outputs.size())
                tuple[j] = replace_digit(tuple[j], p.second, p.first.of(tuple[i]));
        return tuple;
    };

    std::vector<std::int64_t> sources(written.size());
    for (std::size_t index = 0; index < written.size(); ++index) {
        sources[index] = written[index] ? static_cast<std::int64_t>(index) : -1;
        if (written[index] || domain.restore != Restore::repeat) continue;
        Values tuple(outputs.size());
        for (std::size_t i = outputs.size(), rest = index; i-- > 0;) {
            tuple[i] = static_cast<std::int64_t>(rest) % outputs[i].extent;
            rest /= static_cast<std::size_t>(outputs[i].extent);
        }
        std::int64_t nearest = INT64_MAX;
        for (const DomainPart& part : domain.parts) {
            Values from = moved(part, tuple);
            std::int64_t distance = 0;
            bool inside = true;
            for (std::size_t i = 0; i < tuple.size(); ++i) {
                distance += std::abs(from[i] - tuple[i]);
                inside &= from[i] >= 0 && from[i] < outputs[i].extent;
            }
            if (!inside || distance >= nearest || !written[static_cast<std::size_t>(index_of(from))]) continue;
            nearest = distance;
            sources[index] = index_of(from);
        }
    }
    return sources;
}

std::vector<Axis> axes_named_by(const Domain& domain, const std::vector<Axis>& axes) {
    std::set<std::string> names;
    for (const DomainPart& part : domain.parts) {
        for (const DigitRange& r : part.ranges) names.insert(r.digit.axis);
        for (const DigitPair& p : part.diagonals) names.insert(p.first.axis), names.insert(p.second.axis);
    }
    std::vector<Axis> named;
    for (const Axis& axis : axes)
        if (names.contains(axis.name)) named.push_back(axis);
    return named;
}

DomainTest::DomainTest(const Domain& domain, const std::vector<Axis>& axes) {
    auto place = [&](const Digit& d) { return Place{place_of(d.axis, axes), d.stride, d.radix}; };
    for (const DomainPart& part : domain.parts) {
        Part& made = parts_.emplace_back();
        for (const DigitRange& r : part.ranges) made.ranges.push_back({place(r.digit), r.lo, r.hi});
        for (const DigitPair& p : part.diagonals) made.diagonals.emplace_back(place(p.first), place(p.second));
    }
}

bool DomainTest::contains(const std::int64_t* instance) const {
    auto of = [&](const Place& p) { return instance[p.axis] / p.stride % p.radix; };
    for (const Part& part : parts_) {
        bool holds = true;
        for (const Range& r : part.ranges) holds = holds && of(r.digit) >= r.lo && of(r.digit) < r.hi;
        for (const auto& [first, second] : part.diagonals) holds = holds && of(first) == of(second);
        if (holds) return true;
    }
    return parts_.empty();
}

}  // namespace loopegg
