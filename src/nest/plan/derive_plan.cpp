#include "nest/plan/derive_plan.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "graph/normalise.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/plan/apply_plan.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

// What is left of an iterator in one part, as plans see it: the digits that still have a loop of their own, the lowest first. In a plan a digit is
// written by its place among the remaining digits.
class LeftDigits {
public:
    struct Segment {
        std::int64_t stride, radix, size;  // of the iterator's value; `size` values are left of `radix`
    };
    explicit LeftDigits(std::int64_t extent) : segments_{{1, extent, extent}} {}

    // The segment that is exactly this digit; none where the digit has no loop of its own any more.
    std::optional<std::size_t> isolate(const Digit& d) {
        for (std::size_t i = 0; i < segments_.size(); ++i) {
            const Segment s = segments_[i];
            const std::int64_t limit = d.stride * d.radix, end = s.stride * s.radix;
            if (d.stride < s.stride || limit > end) continue;
            if (d.stride == s.stride && limit == end) return i;
            if (s.size != s.radix || d.stride % s.stride != 0 || end % limit != 0) return {};
            std::vector<Segment> split;
            if (d.stride > s.stride) split.push_back({s.stride, d.stride / s.stride, d.stride / s.stride});
            split.push_back({d.stride, d.radix, d.radix});
            if (end > limit) split.push_back({limit, end / limit, end / limit});
            segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
            segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(i), split.begin(), split.end());
            return i + (d.stride > s.stride);
        }
        return {};
    }
    // The axis whose topmost digit is this segment, and the segment alone.
    Term up_to(const std::string& name, std::size_t i) const {
        const std::int64_t limit = below(i) * segments_[i].size;
        return limit == below(segments_.size()) ? Term(name) : Term("rem", {Term(name), Term(limit)});
    }
    Term alone(const std::string& name, std::size_t i) const { return below(i) == 1 ? up_to(name, i) : Term("quo", {up_to(name, i), Term(below(i))}); }
    void keep(std::size_t i, std::int64_t size) { segments_[i].size = size; }
    void drop(std::size_t i) { segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i)); }

private:
    std::int64_t below(std::size_t i) const {
        std::int64_t product = 1;
        for (std::size_t j = 0; j < i; ++j) product *= segments_[j].size;
        return product;
    }
    std::vector<Segment> segments_;
};

using Left = std::map<std::string, LeftDigits>;

// The argument of a bottleneck: a factor where the extent is a multiple of what is kept, otherwise the number of values that are kept.
std::pair<const std::string, Term> kept_of(std::int64_t extent, std::int64_t kept) {
    if (extent % kept == 0) return {"?k", Term(extent / kept)};
    return {"?w", Term(kept)};
}

class Writer {
public:
    Writer(const Statement& statement, Restore restore) : statement_(statement), restore_(restore) {}

    // Writes the steps by which part number `part` of the nest becomes these parts. False where the rules of plans cannot express that.
    bool write(std::vector<DomainPart> parts, std::size_t part, Left left, bool cut) {
        if (parts.size() == 1) return restrict(parts[0], part, left, cut);
        for (const DigitRange& r : std::vector<DigitRange>(parts[0].ranges))
            for (std::int64_t at : {r.lo, r.hi}) {
                std::vector<DomainPart> low, high;
                if (at <= 0 || at >= r.digit.radix || !divided(parts, r.digit, at, low, high)) continue;
                LeftDigits& digits = left.at(r.digit.axis);
                const auto segment = digits.isolate(r.digit);
                if (!segment) return false;
                add("cut-domain", {{"?a", digits.alone(r.digit.axis, *segment)}, {"?k", Term(at)}}, cut ? std::optional(part) : std::nullopt);
                Left above = left;
                digits.keep(*segment, at);
                above.at(r.digit.axis).keep(*segment, r.digit.radix - at);
                // The high parts come first, so that the number of the low part does not change.
                const std::size_t high_part = part + 1;
                return write(std::move(high), high_part, std::move(above), true) && write(std::move(low), part, std::move(left), true);
            }
        return false;
    }

    std::vector<Application> applications;

private:
    // The parts on either side of a cut, without the range that the cut itself expresses.
    static bool divided(const std::vector<DomainPart>& parts, const Digit& digit, std::int64_t at, std::vector<DomainPart>& low,
                        std::vector<DomainPart>& high) {
        for (DomainPart p : parts) {
            auto it = std::find_if(p.ranges.begin(), p.ranges.end(), [&](const DigitRange& r) { return r.digit == digit; });
            if (it == p.ranges.end()) return false;
            const DigitRange r = *it;
            p.ranges.erase(it);
            if (r.lo == 0 && r.hi == at)
                low.push_back(std::move(p));
            else if (r.lo == at && r.hi == digit.radix)
                high.push_back(std::move(p));
            else
                return false;
        }
        return !low.empty() && !high.empty();
    }

    bool restrict(const DomainPart& p, std::size_t number, Left& left, bool cut) {
        const auto part = cut ? std::optional(number) : std::nullopt;
        for (const DigitPair& d : p.diagonals) {
            const bool output_first = writes(d.first.axis) || !writes(d.second.axis);
            const Digit &a = output_first ? d.first : d.second, &b = output_first ? d.second : d.first;
            LeftDigits &of_a = left.at(a.axis), &of_b = left.at(b.axis);
            const auto i = of_a.isolate(a), j = of_b.isolate(b);
            if (!i || !j) return false;
            add("group-axes", {{"?a", of_a.up_to(a.axis, *i)}, {"?b", of_b.up_to(b.axis, *j)}, {"?g", Term(a.radix)}}, part);
            of_a.drop(*i), of_b.drop(*j);
        }
        for (const DigitRange& r : p.ranges) {
            LeftDigits& digits = left.at(r.digit.axis);
            const auto i = digits.isolate(r.digit);
            if (!i || r.lo != 0) return false;
            add("bottleneck-axis", {{"?a", digits.alone(r.digit.axis, *i)}, kept_of(r.digit.radix, r.hi)}, part, writes(r.digit.axis));
            digits.keep(*i, r.hi);
        }
        return true;
    }

    bool writes(const std::string& axis) const { return statement_.writes_axis(statement_.axis(axis)); }

    void add(const char* rule, std::map<std::string, Term> with, std::optional<std::size_t> part, bool restored = false) {
        Application a;
        a.rule = rule, a.with = std::move(with);
        if (part) a.part = static_cast<std::int64_t>(*part);
        if (restored) a.restore = to_string(restore_ == Restore::none ? Restore::zero : restore_);
        applications.push_back(std::move(a));
    }

    const Statement& statement_;
    Restore restore_;
};

// A network of this node alone, to try a plan on.
Graph alone(const Node& node) {
    Graph graph;
    graph.name = "one node";
    Node copy = node;
    for (std::size_t i = 0; i < copy.inputs.size(); ++i) graph.inputs.push_back({copy.inputs[i] = fmt::format("in{}", i), node.input_shapes[i]});
    graph.nodes.push_back(std::move(copy));
    graph.outputs = {node.name};
    complete(graph);
    return graph;
}

// The restored channels come first. Then the rest of the site is a node like any other.
std::vector<Application> restored_pointwise(const Node& node, const Domain& domain, const NamedRules& rules) {
    const NarrowedDomain narrow = narrowed(domain, axes_of(node));
    Application bottleneck;
    bottleneck.rule = "bottleneck-axis", bottleneck.with = {{"?a", Term("co")}, kept_of(narrow.channels, narrow.kept)},
    bottleneck.restore = to_string(domain.restore);
    Graph graph = alone(node);
    restore_pointwise(graph, node.name, narrow.kept);
    complete(graph);
    std::vector<Application> all{std::move(bottleneck)};
    for (Application& a : applications_for(*graph.find(node.name), narrow.rest, rules)) all.push_back(std::move(a));
    return all;
}

}  // namespace

std::vector<Application> applications_for(const Node& node, const Domain& domain, const NamedRules& rules) {
    if (domain.whole()) return {};
    if (domain.restore == Restore::pointwise) return restored_pointwise(node, domain, rules);
    const Term nest = nest_of(node);
    const Statement statement = statement_of(nest_parts(nest).statement);
    const Graph before = alone(node);
    if (node.domain.whole()) {
        Left left;
        for (const Iterator& it : statement.axes) left.emplace(it.name, LeftDigits(it.extent));
        Writer writer(statement, domain.restore);
        Graph wanted = before;
        set_domain(wanted.nodes[0], domain);
        complete(wanted);
        try {
            Plan plan;
            if (writer.write(domain.parts, 0, std::move(left), false)) {
                plan.steps.push_back({node.name, writer.applications});
                if (apply_plan(before, plan, rules) == normalise(wanted)) return writer.applications;
            }
        } catch (const UserError&) {
            // A rule refuses these steps, so the nest itself is written (below).
        }
    }
    const Term chosen = nest_from({nest_parts(nest).statement, schedule_of(statement, domain), restore_word(domain.restore)});
    Application whole;
    whole.rule = "restrict-nest";
    whole.with.emplace("?n", chosen);
    return {whole};
}

}  // namespace loopegg
