#include "nest/isl_judge.hpp"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "nest/axis.hpp"

namespace loopegg {
namespace {

struct ContextFree { void operator()(isl_ctx* c) const { isl_ctx_free(c); } };
struct SetFree { void operator()(isl_set* s) const { isl_set_free(s); } };
using Context = std::unique_ptr<isl_ctx, ContextFree>;
using Set = std::unique_ptr<isl_set, SetFree>;

isl_ctx* context() {
    thread_local Context ctx = [] {
        Context c(isl_ctx_alloc());
        isl_options_set_on_error(c.get(), ISL_ON_ERROR_CONTINUE);
        return c;
    }();
    return ctx.get();
}

Set read_set(const std::string& text) {
    Set s(isl_set_read_from_str(context(), text.c_str()));
    if (!s) throw InternalFault("isl cannot read the set " + text);
    return s;
}
bool yes(isl_bool answer) {
    if (answer == isl_bool_error) throw InternalFault("isl could not answer");
    return answer == isl_bool_true;
}

std::string number(std::int64_t n) { return std::to_string(n); }

// An axis as isl text; what it asks for goes to `conditions`. `mark` stands behind every iterator's name, to tell two instances apart.
std::string axis_text(const Term& axis, const std::string& mark, std::vector<std::string>& conditions) {
    if (axis.size() == 0) return axis.integer() ? to_string(axis) : axis_name(axis)->extent == 1 ? "0" : axis_name(axis)->name + mark;
    auto at = [&](std::size_t i) { return axis_text(axis[i], mark, conditions); };
    if (axis.is("quo", 2)) return "floor((" + at(0) + ")/" + to_string(axis[1]) + ")";
    if (axis.is("rem", 2)) return "((" + at(0) + ") mod " + to_string(axis[1]) + ")";
    if (axis.is("pair", 2)) {
        std::string first = at(0);
        return "(" + number(axis_extent(axis[1])) + "*" + first + " + " + at(1) + ")";
    }
    if (axis.is("span", 3)) {
        std::string inner = at(0);
        conditions.push_back(to_string(axis[1]) + " <= " + inner + " < " + to_string(axis[2]));
        return "(" + inner + " - " + to_string(axis[1]) + ")";
    }
    std::int64_t g = *axis[0].integer();
    std::string a = "floor((" + at(1) + ")/" + number(axis_extent(axis[1]) / g) + ")", b = "floor((" + at(2) + ")/" + number(axis_extent(axis[2]) / g) + ")";
    conditions.push_back(a + " = " + b);
    return a;
}

// One path of the schedule: its place in time as expressions, and where it is defined.
struct Path {
    std::vector<std::string> time, conditions;
    std::vector<std::pair<std::size_t, std::string>> apart;   // dimensions whose iterations run at once, and the loop's kind
};

void collect(const Term& sched, Path path, const std::string& mark, std::vector<Path>& out) {
    if (sched.size() == 0) {
        out.push_back(std::move(path));
    } else if (sched.is("cat", 2)) {
        Path second = path;
        path.time.push_back("0");
        second.time.push_back("1");
        collect(sched[0], std::move(path), mark, out);
        collect(sched[1], std::move(second), mark, out);
    } else {
        const std::string& op = sched.op().text();
        if (is_loop_operator(op)) {
            if (op == "par" || op == "vec" || op == "bind") path.apart.emplace_back(path.time.size(), op);
            path.time.push_back(axis_text(loop_axis(sched), mark, path.conditions));
        }
        collect(sched[sched.size() - 1], std::move(path), mark, out);
    }
}

bool has_partial(const Term& t) {
    return t.is("partial", 3) || std::any_of(t.children().begin(), t.children().end(), [](const Term& c) { return has_partial(c); });
}

// Questions about pairs of instances, x and x', are asked as the emptiness of one set over both.
class Judge {
public:
    Judge(const Statement& s, const Term& sched) : s_(s), sched_(complete(s, sched)) {
        collect(sched_, {}, "", paths_);
        collect(sched_, {}, other, others_);
        for (auto* paths : {&paths_, &others_})
            for (Path& p : *paths) depth_ = std::max(depth_, p.time.size());
        for (auto* paths : {&paths_, &others_})
            for (Path& p : *paths) p.time.resize(depth_, "0");
        // Iterators of extent 1 are left out: they say nothing and cost dimensions.
        for (const Iterator& it : s.axes)
            if (it.extent > 1) names_.push_back(it.name);
    }

    Set domain() const {
        std::vector<std::string> all;
        for (const Path& p : paths_) all.push_back(tuple() + " : " + join(with_box(p.conditions), " and "));
        return read_set("{ " + join(all, "; ") + " }");
    }

    std::optional<std::string> answer(const JudgeOptions& options) const {
        if (visits_twice()) return "visits some instances twice";
        if (!options.may_restrict) {
            Set whole = read_set("{ " + tuple() + " : " + join(with_box({}), " and ") + " }");
            if (!yes(isl_set_is_equal(domain().get(), whole.get()))) return "leaves instances out";
        }
        if (!injective()) return "runs two instances at one time: some digit is in no loop";
        if (reverses(options.strict_fp)) return options.strict_fp ? "takes a sum in another order" : "reverses a dependence";
        if (options.strict_fp && s_.combine != Combine::assign && has_partial(sched_)) return "takes a sum in another order (partial)";
        for (std::size_t p = 0; p < paths_.size(); ++p)
            for (auto& [dimension, kind] : paths_[p].apart)
                if (conflicts(p, dimension)) return "runs instances at once (" + kind + ") that write one output element or wait for each other";
        return {};
    }

private:
    static constexpr const char* other = "_";   // behind the iterators of x'

    std::string tuple() const { return "[" + join(names_, ", ") + "]"; }

    std::vector<std::string> with_box(std::vector<std::string> conditions, const std::string& mark = "") const {
        conditions.push_back("1 = 1");
        for (const Iterator& it : s_.axes)
            if (it.extent > 1) conditions.push_back("0 <= " + it.name + mark + " < " + number(it.extent));
        return conditions;
    }

    // Whether instances x on one path and x' on another can be such that all of this holds.
    bool possible(const Path& first, const Path& second, std::vector<std::string> conditions) const {
        std::vector<std::string> names = names_;
        for (const std::string& n : names_) names.push_back(n + other);
        for (const std::string& c : with_box(first.conditions)) conditions.push_back(c);
        for (const std::string& c : with_box(second.conditions, other)) conditions.push_back(c);
        return !yes(isl_set_is_empty(read_set("{ [" + join(names, ", ") + "] : " + join(conditions, " and ") + " }").get()));
    }

    // "first is lexicographically before second", or at least not after; false is written as 1 = 0.
    static std::string before(const std::vector<std::string>& first, const std::vector<std::string>& second, bool or_equal) {
        std::vector<std::string> cases, equal;
        for (std::size_t d = 0; d < first.size(); ++d) {
            if (first[d] == second[d]) continue;
            std::vector<std::string> here = equal;
            here.push_back(first[d] + " < " + second[d]);
            cases.push_back("(" + join(here, " and ") + ")");
            equal.push_back(first[d] + " = " + second[d]);
        }
        if (or_equal) cases.push_back(equal.empty() ? "1 = 1" : "(" + join(equal, " and ") + ")");
        return cases.empty() ? "1 = 0" : "(" + join(cases, " or ") + ")";
    }
    std::string naive_before() const {
        std::vector<std::string> primed;
        for (const std::string& n : names_) primed.push_back(n + other);
        return before(names_, primed, false);
    }
    static std::vector<std::string> equal(const std::vector<std::string>& a, const std::vector<std::string>& b, std::size_t upto) {
        std::vector<std::string> all;
        for (std::size_t d = 0; d < upto; ++d) all.push_back(a[d] + " = " + b[d]);
        return all;
    }

    bool visits_twice() const {
        if (paths_.size() == 1) return false;
        Set seen(isl_set_empty(isl_set_get_space(domain().get())));
        for (const Path& p : paths_) {
            Set here = read_set("{ " + tuple() + " : " + join(with_box(p.conditions), " and ") + " }");
            if (!yes(isl_set_is_disjoint(seen.get(), here.get()))) return true;
            seen.reset(isl_set_union(seen.release(), here.release()));
        }
        return false;
    }

    // Two paths differ in the place of some cat; on one path, equal times must mean equal instances.
    bool injective() const {
        for (std::size_t p = 0; p < paths_.size(); ++p) {
            auto same_time = equal(paths_[p].time, others_[p].time, depth_);
            same_time.push_back(naive_before());
            if (possible(paths_[p], others_[p], same_time)) return false;
        }
        return true;
    }

    std::vector<std::string> index(const Access& a, const std::string& mark) const {
        std::vector<std::string> all;
        for (const Affine& d : a.index) {
            std::string sum = number(d.offset);
            for (std::size_t i = 0; i < d.coefficients.size(); ++i)
                if (d.coefficients[i] != 0 && s_.axes[i].extent > 1) sum += " + " + number(d.coefficients[i]) + "*" + s_.axes[i].name + mark;
            all.push_back(sum);
        }
        return all;
    }
    std::vector<std::string> meet(const Access& first, const Access& second) const { return equal(index(first, ""), index(second, other), first.index.size()); }

    // The pairs of accesses through which an instance depends on an earlier one.
    std::vector<std::pair<const Access*, const Access*>> dependences(bool writes) const {
        std::vector<std::pair<const Access*, const Access*>> all;
        if (writes) all.emplace_back(&s_.write, &s_.write);
        for (const Access& r : s_.reads)
            if (r.buffer == 0) all.emplace_back(&s_.write, &r), all.emplace_back(&r, &s_.write);
        return all;
    }

    bool reverses(bool strict) const {
        for (auto [earlier, later] : dependences(s_.combine == Combine::assign || strict))
            for (const Path& p : paths_)
                for (const Path& q : others_) {
                    auto conditions = meet(*earlier, *later);
                    conditions.push_back(naive_before());
                    conditions.push_back(before(q.time, p.time, true));
                    if (possible(p, q, conditions)) return true;
                }
        return false;
    }

    // Two instances that meet in one element, told apart first by this dimension of time.
    bool conflicts(std::size_t path, std::size_t dimension) const {
        const Path& p = paths_[path];
        for (auto [first, second] : dependences(true))
            for (const Path& q : others_) {
                bool together = std::equal(p.time.begin(), p.time.begin() + static_cast<std::ptrdiff_t>(dimension), q.time.begin(), [](const std::string& a, const std::string& b) {
                    bool fixed_a = a == "0" || a == "1", fixed_b = b == "0" || b == "1";
                    return !(fixed_a && fixed_b) || a == b;
                });
                if (!together) continue;
                for (bool turned : {false, true}) {
                    auto conditions = meet(*first, *second);
                    for (std::string& c : equal(p.time, q.time, dimension)) conditions.push_back(std::move(c));
                    conditions.push_back(p.time[dimension] + (turned ? " > " : " < ") + q.time[dimension]);
                    if (possible(p, q, conditions)) return true;
                }
            }
        return false;
    }

    const Statement& s_;
    Term sched_;
    std::vector<Path> paths_, others_;   // of x, of x'
    std::vector<std::string> names_;
    std::size_t depth_ = 0;
};

Set union_of(const std::vector<Term>& iterators, const std::vector<Restrictions>& parts) {
    std::vector<std::string> names, box, all;
    for (const Term& leaf : iterators) {
        auto name = axis_name(leaf);
        names.push_back(name->name);
        box.push_back("0 <= " + name->name + " < " + number(name->extent));
    }
    for (const Restrictions& part : parts) {
        std::vector<std::string> conditions = box;
        conditions.push_back("1 = 1");
        for (const Term& r : part) axis_text(r, "", conditions);
        all.push_back("[" + join(names, ", ") + "] : " + join(conditions, " and "));
    }
    return read_set("{ " + join(all, "; ") + " }");
}

}  // namespace

std::optional<std::string> isl_judge(const Statement& statement, const Term& sched, const JudgeOptions& options) { return Judge(statement, sched).answer(options); }

std::optional<std::string> isl_judge(const Term& nest, const JudgeOptions& options) {
    NestParts parts = nest_parts(nest);
    return isl_judge(statement_of(parts.statement), parts.schedule, options);
}

bool isl_same_domain(const Statement& statement, const Term& a, const Term& b) {
    return yes(isl_set_is_equal(Judge(statement, a).domain().get(), Judge(statement, b).domain().get()));
}

bool isl_restricts(const Statement& statement, const Term& whole, const Term& part) {
    return yes(isl_set_is_strict_subset(Judge(statement, part).domain().get(), Judge(statement, whole).domain().get()));
}

bool isl_equal(const std::vector<Term>& iterators, const std::vector<Restrictions>& a, const std::vector<Restrictions>& b) {
    return yes(isl_set_is_equal(union_of(iterators, a).get(), union_of(iterators, b).get()));
}

bool isl_disjoint(const std::vector<Term>& iterators, const std::vector<Restrictions>& a, const std::vector<Restrictions>& b) {
    return yes(isl_set_is_disjoint(union_of(iterators, a).get(), union_of(iterators, b).get()));
}

}  // namespace loopegg
