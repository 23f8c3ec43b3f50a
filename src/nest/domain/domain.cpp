#include "nest/domain/domain.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"

namespace loopegg {
namespace {

using Values = std::vector<std::int64_t>;

void collect(const Term& axis, std::map<std::string, Term>& found) {
    if (axis.size() == 0) return;
    for (const Term& child : axis.children())
        if (!child.integer()) collect(child, found);
    if (!axis.is("span", 3) && !axis.is("diag", 3)) return;
    Term normal = to_term(normal_axis(axis));
    if (normal.is("span", 3) || normal.is("diag", 3))
        found.emplace(to_string(normal), normal);
    else if (normal.is("pair", 2))
        collect(normal, found);  // a span of whole rows of a pair is a span of its outer axis
}

// The digit of an iterator that has the same values as the axis wherever the restrictions hold; none if there is no such digit.
std::optional<AxisDigit> lifted(const AxisDigit& axis) {
    if (axis.base.size() == 0) return axis;
    if (!axis.base.is("span", 3)) return {};
    // A - lo agrees with A on the digits below the largest power that divides lo.
    std::int64_t lo = *axis.base[1].integer();
    AxisDigit whole = normal_axis(axis.base[0]);
    if (lo % axis.limit != 0 || (whole.extent() % axis.limit != 0)) return {};
    return lifted(quotient(remainder(whole, axis.limit), axis.stride));
}

std::optional<Digit> as_digit(const AxisDigit& axis) {
    auto lift = lifted(axis);
    if (!lift || lift->base.integer() || lift->limit % lift->stride != 0) return {};
    auto name = axis_name(lift->base);
    if (name->extent % lift->limit != 0) return {};
    return Digit{name->name, lift->stride, lift->limit / lift->stride};
}

// Adds one restriction as conditions on digits; false if the restriction is no such condition.
bool add_condition(const Term& restriction, DomainPart& part) {
    if (restriction.is("span", 3)) {
        auto digit = as_digit(normal_axis(restriction[0]));
        if (!digit) return false;
        part.ranges.push_back({*digit, *restriction[1].integer(), *restriction[2].integer()});
        return true;
    }
    std::int64_t g = *restriction[0].integer();
    AxisDigit a = normal_axis(restriction[1]), b = normal_axis(restriction[2]);
    auto first = as_digit(quotient(a, a.extent() / g)), second = as_digit(quotient(b, b.extent() / g));
    if (!first || !second || first->radix != g || second->radix != g) return false;
    if (*second < *first) std::swap(first, second);
    part.diagonals.push_back({*first, *second});
    return true;
}

// An axis as axis_value() reads it, prepared for questions at very many points.
class ReadyAxis {
public:
    ReadyAxis(const Term& axis, const std::vector<Term>& leaves) {
        if (axis.size() == 0) {
            op_ = Op::leaf, p_ = std::find(leaves.begin(), leaves.end(), axis) - leaves.begin();
            return;
        }
        const std::string& op = axis.op().text();
        const std::size_t first = op == "diag" ? 1 : 0;
        parts_.emplace_back(axis[first], leaves);
        if (op == "quo" || op == "rem")
            op_ = op == "quo" ? Op::quotient : Op::remainder, p_ = *axis[1].integer();
        else if (op == "span")
            op_ = Op::span, p_ = *axis[1].integer(), q_ = *axis[2].integer();
        else {
            parts_.emplace_back(axis[first + 1], leaves);
            op_ = op == "diag" ? Op::diagonal : Op::pair;
            p_ = op == "diag" ? axis_extent(axis[1]) / *axis[0].integer() : axis_extent(axis[1]);
            if (op == "diag") q_ = axis_extent(axis[2]) / *axis[0].integer();
        }
    }

    std::optional<std::int64_t> at(const Values& values) const {
        if (op_ == Op::leaf) return values[static_cast<std::size_t>(p_)];
        const auto a = parts_[0].at(values);
        if (!a) return {};
        switch (op_) {
            case Op::quotient: return *a / p_;
            case Op::remainder: return *a % p_;
            case Op::span: return p_ <= *a && *a < q_ ? std::optional(*a - p_) : std::nullopt;
            default: break;
        }
        const auto b = parts_[1].at(values);
        if (!b) return {};
        if (op_ == Op::pair) return *a * p_ + *b;
        return *a / p_ == *b / q_ ? std::optional(*a / p_) : std::nullopt;
    }

private:
    enum class Op { leaf, quotient, remainder, span, pair, diagonal };
    Op op_ = Op::leaf;
    std::int64_t p_ = 0, q_ = 0;
    std::vector<ReadyAxis> parts_;
};

// The instances that restrictions without a form over digits leave, as boxes: the values of the axes that they name, enumerated and gathered into runs.
class Enumeration {
public:
    Enumeration(const Statement& s, const std::vector<Term>& restrictions) {
        std::int64_t points = 1;
        std::vector<Term> leaves;
        for (const Iterator& it : s.axes) {
            Term leaf = axis_leaf(it.name, it.extent);
            bool named = std::any_of(restrictions.begin(), restrictions.end(), [&](const Term& r) {
                auto all = iterators_of(r);
                return std::find(all.begin(), all.end(), leaf) != all.end();
            });
            if (named) axes_.push_back(it), leaves.push_back(leaf), points *= it.extent;
        }
        if (points > (std::int64_t{1} << 24)) throw UserError("the restricted domain is too irregular to write down");
        values_.resize(axes_.size());
        for (const Term& r : restrictions) restrictions_.emplace_back(r, leaves);
    }

    std::vector<DomainPart> run() {
        std::vector<DomainPart> parts;
        for (auto& ranges : below(0)) parts.push_back({std::move(ranges), {}});
        return parts;
    }

private:
    using Boxes = std::vector<std::vector<DigitRange>>;

    Boxes below(std::size_t axis) {
        if (axis == axes_.size()) return inside() ? Boxes{{}} : Boxes{};
        Boxes out;
        std::optional<Boxes> run;
        std::int64_t from = 0, extent = axes_[axis].extent;
        for (std::int64_t v = 0; v <= extent; ++v) {
            std::optional<Boxes> here;
            if (v < extent) {
                values_[axis] = v;
                here = below(axis + 1);
            }
            if (run && here && *run == *here) continue;
            if (run)
                for (auto box : *run) {
                    if (from > 0 || v < extent) box.push_back({{axes_[axis].name, 1, extent}, from, v});
                    out.push_back(std::move(box));
                }
            run = std::move(here);
            from = v;
        }
        return out;
    }

    bool inside() const {
        return std::all_of(restrictions_.begin(), restrictions_.end(), [&](const ReadyAxis& r) { return r.at(values_).has_value(); });
    }

    std::vector<ReadyAxis> restrictions_;
    std::vector<Iterator> axes_;
    Values values_;
};

void visit_paths(const Term& sched, std::map<std::string, Term> path, std::vector<std::map<std::string, Term>>& leaves) {
    if (sched.size() == 0) {
        leaves.push_back(std::move(path));
    } else if (sched.is("cat", 2)) {
        visit_paths(sched[0], path, leaves);
        visit_paths(sched[1], std::move(path), leaves);
    } else {
        if (is_loop_operator(sched.op().text())) collect(loop_axis(sched), path);
        visit_paths(sched[sched.size() - 1], std::move(path), leaves);
    }
}

// Merges two diagonals over neighbouring digits of both axes into one diagonal over the joined digits: a grouping of a grouping.
bool merge_diagonals(std::vector<DigitPair>& all) {
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = 0; j < all.size(); ++j) {
            DigitPair &high = all[i], &low = all[j];
            if (i == j || high.first.axis != low.first.axis || high.second.axis != low.second.axis) continue;
            if (high.first.stride != low.first.stride * low.first.radix || high.second.stride != low.second.stride * low.second.radix) continue;
            low.first.radix *= high.first.radix, low.second.radix *= high.second.radix;
            all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
            return true;
        }
    return false;
}

// Merges several ranges of one digit into one range.
void tidy(DomainPart& part) {
    std::map<Digit, std::pair<std::int64_t, std::int64_t>> ranges;
    for (const DigitRange& r : part.ranges) {
        auto [it, fresh] = ranges.emplace(r.digit, std::pair(r.lo, r.hi));
        if (!fresh) it->second = {std::max(it->second.first, r.lo), std::min(it->second.second, r.hi)};
    }
    part.ranges.clear();
    for (auto& [digit, range] : ranges) part.ranges.push_back({digit, range.first, range.second});
    while (merge_diagonals(part.diagonals)) {
    }
    std::sort(part.diagonals.begin(), part.diagonals.end());
    part.diagonals.erase(std::unique(part.diagonals.begin(), part.diagonals.end()), part.diagonals.end());
}

}  // namespace

std::vector<Term> restrictions(const Term& axis) {
    std::map<std::string, Term> found;
    collect(axis, found);
    std::vector<Term> all;
    for (auto& [text, term] : found) all.push_back(term);
    return all;
}

std::vector<Axis> graph_axes(const Statement& statement) {
    std::vector<Axis> axes;
    for (std::size_t i = 0; i < statement.axes.size(); ++i) {
        const Iterator& it = statement.axes[i];
        axes.push_back({it.name, it.extent, !statement.writes_axis(static_cast<int>(i)) || it.role == AxisRole::reduction});
    }
    return axes;
}

Domain domain_of_parts(const Statement& statement, const std::vector<std::vector<Term>>& parts) {
    Domain domain;
    if (parts.size() == 1 && parts[0].empty()) return domain;
    for (const std::vector<Term>& restrictions : parts) {
        DomainPart part;
        bool digits = std::all_of(restrictions.begin(), restrictions.end(), [&](const Term& r) { return add_condition(r, part); });
        if (digits)
            domain.parts.push_back(std::move(part));
        else
            for (DomainPart& p : Enumeration(statement, restrictions).run()) domain.parts.push_back(std::move(p));
    }
    for (DomainPart& part : domain.parts) tidy(part);
    if (instance_count(domain, graph_axes(statement)) == statement.instances()) return {};
    return domain;
}

Domain domain_of(const Statement& statement, const Term& sched) {
    std::vector<std::map<std::string, Term>> leaves;
    visit_paths(complete(statement, sched), {}, leaves);
    std::vector<std::vector<Term>> parts;
    for (const auto& leaf : leaves) {
        parts.emplace_back();
        for (auto& [text, restriction] : leaf) parts.back().push_back(restriction);
    }
    return domain_of_parts(statement, parts);
}

Domain domain_of(const Term& nest) {
    NestParts parts = nest_parts(nest);
    Domain domain = domain_of(statement_of(parts.statement), parts.schedule);
    if (parts.restore.empty()) return domain;
    const auto restore = restore_named(parts.restore);
    if (!restore) throw UserError("unknown restore '" + parts.restore + "': expected repeat, zero or pointwise");
    domain.restore = *restore;
    return domain;
}

}  // namespace loopegg
