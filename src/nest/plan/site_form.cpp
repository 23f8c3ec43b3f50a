#include "nest/plan/site_form.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/text.hpp"
#include "nest/domain/domain.hpp"

namespace loopegg {
namespace {

void gather(const Term& sched, std::vector<Term> loops, std::vector<std::vector<Term>>& parts) {
    if (sched.size() == 0) {
        parts.push_back(std::move(loops));
    } else if (sched.is("cat", 2)) {
        gather(sched[0], loops, parts);
        gather(sched[1], std::move(loops), parts);
    } else {
        if (is_loop_operator(sched.op().text()) && !iterators_of(to_term(normal_axis(loop_axis(sched)))).empty()) loops.push_back(loop_axis(sched));
        gather(sched[sched.size() - 1], std::move(loops), parts);
    }
}

// The stride of a digit in its iterator, by which the remaining digits of an iterator are put in order.
std::int64_t stride_in_iterator(const AxisDigit& axis) {
    if (axis.base.size() == 0) return axis.stride;
    if (axis.base.is("span", 3)) return axis.stride * stride_in_iterator(normal_axis(axis.base[0]));
    return axis.stride;
}

std::string text(const Term& axis) { return to_string(bare(axis)); }

}  // namespace

SiteForm::SiteForm(const Node& node) : SiteForm(nest_of(node)) {}

SiteForm::SiteForm(const Term& nest) {
    NestParts parts = nest_parts(nest);
    statement_ = statement_of(parts.statement);
    gather(parts.schedule, {}, parts_);
}

Term SiteForm::left_of(const Loops& loops, const std::string& iterator) const {
    std::vector<AxisDigit> digits;
    for (const Term& loop : loops) {
        auto all = iterators_of(loop);
        if (all.size() == 1 && axis_name(all[0])->name == iterator) digits.push_back(normal_axis(loop));
    }
    std::sort(digits.begin(), digits.end(), [](const AxisDigit& a, const AxisDigit& b) { return stride_in_iterator(a) > stride_in_iterator(b); });
    if (digits.empty()) {
        // After a grouping, the group is the diagonal's own loop.
        if (iterator == "g")
            for (const Term& loop : loops)
                if (loop.is("diag", 3)) return loop;
        return Term(std::int64_t{0});
    }
    AxisDigit whole = digits[0];
    for (std::size_t i = 1; i < digits.size(); ++i) whole = paired(whole, digits[i]);
    return to_term(whole);
}

Term SiteForm::axis(std::size_t part, const Term& e) const {
    if (e.size() == 0) {
        auto name = axis_name(e);
        if (!name || statement_.axis(name->name) < 0) {
            std::vector<std::string> known;
            for (const Iterator& it : statement_.axes) known.push_back(it.name);
            throw Refusal(
                Diagnostic{"'" + to_string(e) + "' is no axis of " + to_string(statement_.term), {}, did_you_mean(name ? name->name : to_string(e), known)});
        }
        if (!name->extent) return left_of(parts_[part], name->name);
        const std::int64_t extent = statement_.axes[static_cast<std::size_t>(statement_.axis(name->name))].extent;
        if (name->extent != extent)
            throw Refusal("'" + to_string(e) + "' is no axis of the site: " + name->name + " has " + std::to_string(extent) + " values there");
        return e;
    }
    if (!is_axis_operator(e.op().text())) throw Refusal("'" + to_string(e) + "' is no axis: expected an iterator, quo, rem, pair, span or diag");
    std::vector<Term> children;
    for (std::size_t i = 0; i < e.size(); ++i) {
        bool is_axis = e.is("pair", 2) || (e.is("diag", 3) ? i > 0 : i == 0);
        children.push_back(is_axis ? axis(part, e[i]) : Term(number(part, e[i])));
    }
    Term made(e.op(), std::move(children));
    try {
        return to_term(normal_axis(made));
    } catch (const MalformedAxis& bad) {
        throw Refusal(bad.diagnostics()[0].message + " (in " + to_string(e) + ")");
    }
}

std::int64_t SiteForm::number(std::size_t part, const Term& e) const {
    if (auto value = e.integer()) return *value;
    const std::string& op = e.op().text();
    if (op == "extent" && e.size() == 1) return axis_extent(axis(part, e[0]));
    if (e.size() == 2) {
        std::int64_t a = number(part, e[0]), b = number(part, e[1]);
        if (op == "+") return a + b;
        if (op == "-") return a - b;
        if (op == "*") return a * b;
        if (op == "min") return std::min(a, b);
        if (op == "max") return std::max(a, b);
        if (op == "gcd") return std::gcd(a, b);
        if (op == "/") {
            if (b == 0 || a % b != 0) throw Refusal(to_string(e) + " is " + std::to_string(a) + " / " + std::to_string(b) + ", no whole number");
            return a / b;
        }
    }
    throw Refusal("'" + to_string(e) + "' is no number: expected digits, (extent AXIS), or + - * / min max gcd of two numbers");
}

std::size_t SiteForm::isolate(Loops& loops, const Term& wanted) const {
    AxisDigit axis = normal_axis(wanted);
    for (std::size_t i = 0; i < loops.size(); ++i) {
        AxisDigit loop = normal_axis(loops[i]);
        if (loop.base != axis.base || axis.stride < loop.stride || axis.limit > loop.limit) continue;
        bool above = axis.limit<loop.limit, below = axis.stride> loop.stride;
        if ((above && loop.limit % axis.limit != 0) || (below && axis.stride % loop.stride != 0)) continue;
        Loops split;
        if (above) split.push_back(to_term(AxisDigit{loop.base, loop.base_extent, axis.limit, loop.limit}));
        split.push_back(to_term(axis));
        if (below) split.push_back(to_term(AxisDigit{loop.base, loop.base_extent, loop.stride, axis.stride}));
        loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
        loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(i), split.begin(), split.end());
        return i + (above ? 1 : 0);
    }
    if (axis.base.is("pair", 2)) {
        std::size_t first = isolate(loops, axis.base[0]);
        loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(first));
        std::size_t second = isolate(loops, axis.base[1]);
        loops[second] = axis.base;
        return isolate(loops, wanted);
    }
    throw Refusal("no loop walks '" + text(wanted) + "' here");
}

bool SiteForm::is_output_axis(const Term& axis) const {
    for (const Term& leaf : iterators_of(axis))
        if (statement_.writes_axis(statement_.axis(axis_name(leaf)->name))) return true;
    return false;
}

Term SiteForm::list(std::size_t part, const std::vector<Term>& outermost) const {
    Loops loops = parts_[part];
    for (const Term& axis : outermost) isolate(loops, axis);  // all are isolated first, because a later axis may cut what is left of an earlier one
    for (const Term& axis : outermost) loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(isolate(loops, axis)));
    Term made("done");
    for (std::size_t i = loops.size(); i-- > 0;) made = Term("at", {loops[i], made});
    for (std::size_t i = outermost.size(); i-- > 0;) made = Term("at", {outermost[i], made});
    return made;
}

Term SiteForm::schedule() const {
    Term sched;
    for (std::size_t p = parts_.size(); p-- > 0;) sched = sched ? Term("cat", {list(p), sched}) : list(p);
    return sched;
}

}  // namespace loopegg
