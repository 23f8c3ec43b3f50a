#include "nest/isl_judge.hpp"

#include <isl/ctx.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "nest/axis.hpp"

namespace loopegg {
namespace {

struct ContextFree { void operator()(isl_ctx* c) const { isl_ctx_free(c); } };
struct SetFree { void operator()(isl_set* s) const { isl_set_free(s); } };
struct MapFree { void operator()(isl_map* m) const { isl_map_free(m); } };
using Context = std::unique_ptr<isl_ctx, ContextFree>;
using Set = std::unique_ptr<isl_set, SetFree>;
using Map = std::unique_ptr<isl_map, MapFree>;

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
Map read_map(const std::string& text) {
    Map m(isl_map_read_from_str(context(), text.c_str()));
    if (!m) throw InternalFault("isl cannot read the map " + text);
    return m;
}
bool yes(isl_bool answer) {
    if (answer == isl_bool_error) throw InternalFault("isl could not answer");
    return answer == isl_bool_true;
}

std::string number(std::int64_t n) { return std::to_string(n); }

// An axis as isl text; what it asks for goes to `conditions`. `tail` is put behind every iterator's name (to speak of a second instance).
std::string axis_text(const Term& axis, const std::string& tail, std::vector<std::string>& conditions) {
    if (axis.size() == 0) return axis.integer() ? to_string(axis) : axis_name(axis)->name + tail;
    auto at = [&](std::size_t i) { return axis_text(axis[i], tail, conditions); };
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

void collect(const Term& sched, Path path, const std::string& tail, std::vector<Path>& out) {
    if (sched.size() == 0) {
        out.push_back(std::move(path));
    } else if (sched.is("cat", 2)) {
        Path second = path;
        path.time.push_back("0");
        second.time.push_back("1");
        collect(sched[0], std::move(path), tail, out);
        collect(sched[1], std::move(second), tail, out);
    } else {
        const std::string& op = sched.op().text();
        if (is_loop_operator(op)) {
            if (op == "par" || op == "vec" || op == "bind") path.apart.emplace_back(path.time.size(), op);
            path.time.push_back(axis_text(loop_axis(sched), tail, path.conditions));
        }
        collect(sched[sched.size() - 1], std::move(path), tail, out);
    }
}

class Judge {
public:
    Judge(const Statement& s, const Term& sched) : s_(s), sched_(complete(s, sched)) {
        collect(sched_, {}, "", paths_);
        for (const Path& p : paths_) depth_ = std::max(depth_, p.time.size());
    }

    std::string names(const std::string& tail = "") const {
        std::vector<std::string> all;
        for (const Iterator& it : s_.axes) all.push_back(it.name + tail);
        return "[" + join(all, ", ") + "]";
    }
    std::string box(const std::string& tail = "") const {
        std::vector<std::string> all{"1 = 1"};
        for (const Iterator& it : s_.axes) all.push_back("0 <= " + it.name + tail + " < " + number(it.extent));
        return join(all, " and ");
    }
    Set whole() const { return read_set("{ " + names() + " : " + box() + " }"); }

    std::string path_map(const Path& p) const {
        std::vector<std::string> time = p.time, conditions = p.conditions;
        time.resize(depth_, "0");
        conditions.push_back(box());
        return names() + " -> [" + join(time, ", ") + "] : " + join(conditions, " and ");
    }
    Map schedule() const {
        std::vector<std::string> all;
        for (const Path& p : paths_) all.push_back(path_map(p));
        return read_map("{ " + join(all, "; ") + " }");
    }
    Set domain() const { return Set(isl_map_domain(schedule().release())); }

    std::optional<std::string> answer(const JudgeOptions& options) const {
        // Every path by itself, so that an instance on two of them is seen even where isl would join them.
        Set seen(isl_set_empty(isl_set_get_space(whole().get())));
        for (const Path& p : paths_) {
            Set here(isl_map_domain(read_map("{ " + path_map(p) + " }").release()));
            if (!yes(isl_set_is_disjoint(seen.get(), here.get()))) return "visits some instances twice";
            seen.reset(isl_set_union(seen.release(), here.release()));
        }
        if (!options.may_restrict && !yes(isl_set_is_equal(seen.get(), whole().get()))) return "leaves instances out";
        Map order = schedule();
        if (!yes(isl_map_is_injective(order.get()))) return "runs two instances at one time: some digit is in no loop";
        if (auto why = check_dependences(order, options)) return why;
        for (const Path& p : paths_)
            for (auto& [dimension, kind] : p.apart)
                if (!free_of_conflicts(p, dimension)) return "runs instances at once (" + kind + ") that write one output element or wait for each other";
        return {};
    }

private:
    std::string index(const Access& a, const std::string& tail) const {
        std::vector<std::string> all;
        for (const Affine& d : a.index) {
            std::string sum = number(d.offset);
            for (std::size_t i = 0; i < d.coefficients.size(); ++i)
                if (d.coefficients[i] != 0) sum += " + " + number(d.coefficients[i]) + "*" + s_.axes[i].name + tail;
            all.push_back(sum);
        }
        return "[" + join(all, ", ") + "]";
    }
    // Pairs of instances, the first before the second in the naive order, that `later` of the second joins to `earlier` of the first.
    Map related(const Access& earlier, const Access& later) const {
        Map first = read_map("{ " + names() + " -> " + index(earlier, "") + " : " + box() + " }");
        Map second = read_map("{ " + names() + " -> " + index(later, "") + " : " + box() + " }");
        Map pairs(isl_map_apply_range(first.release(), isl_map_reverse(second.release())));
        Map before(isl_map_lex_lt(isl_set_get_space(whole().get())));
        return Map(isl_map_intersect(pairs.release(), before.release()));
    }
    // Everything that must not be reordered.
    Map dependences(bool strict) const {
        Map all(isl_map_empty(isl_map_get_space(related(s_.write, s_.write).get())));
        if (s_.combine == Combine::assign || strict) all = related(s_.write, s_.write);
        for (const Access& r : s_.reads)
            if (r.buffer == 0) {
                all.reset(isl_map_union(all.release(), related(s_.write, r).release()));
                all.reset(isl_map_union(all.release(), related(r, s_.write).release()));
            }
        return all;
    }
    std::optional<std::string> check_dependences(const Map& order, const JudgeOptions& options) const {
        Map deps = dependences(options.strict_fp);
        if (yes(isl_map_is_empty(deps.get()))) return {};
        Map in_time(isl_map_apply_range(isl_map_apply_range(isl_map_reverse(isl_map_copy(order.get())), deps.release()), isl_map_copy(order.get())));
        Map backwards(isl_map_lex_ge(isl_space_domain(isl_map_get_space(in_time.get()))));
        if (!yes(isl_map_is_disjoint(in_time.get(), backwards.get()))) return options.strict_fp ? "takes a sum in another order" : "reverses a dependence";
        if (options.strict_fp && has_partial(sched_)) return "takes a sum in another order (partial)";
        return {};
    }
    static bool has_partial(const Term& t) {
        return t.is("partial", 3) || std::any_of(t.children().begin(), t.children().end(), [](const Term& c) { return has_partial(c); });
    }
    // No two instances that meet in one element differ first in this dimension of time.
    bool free_of_conflicts(const Path& p, std::size_t dimension) const {
        Map conflicts = related(s_.write, s_.write);
        for (const Access& r : s_.reads)
            if (r.buffer == 0) {
                conflicts.reset(isl_map_union(conflicts.release(), related(s_.write, r).release()));
                conflicts.reset(isl_map_union(conflicts.release(), related(r, s_.write).release()));
            }
        Map order = schedule();   // of every path: a cat below the loop runs at once as well
        (void)p;
        Map in_time(isl_map_apply_range(isl_map_apply_range(isl_map_reverse(isl_map_copy(order.get())), conflicts.release()), isl_map_copy(order.get())));
        for (std::size_t d = 0; d < dimension; ++d) in_time.reset(isl_map_equate(in_time.release(), isl_dim_in, static_cast<int>(d), isl_dim_out, static_cast<int>(d)));
        // Fixed parts of a cat that the loop is not in say nothing about it.
        for (std::size_t d = 0; d < dimension; ++d)
            if (p.time[d] == "0" || p.time[d] == "1") in_time.reset(isl_map_fix_si(in_time.release(), isl_dim_in, static_cast<unsigned>(d), p.time[d] == "1"));
        Map same(isl_map_equate(isl_map_copy(in_time.get()), isl_dim_in, static_cast<int>(dimension), isl_dim_out, static_cast<int>(dimension)));
        return yes(isl_map_is_subset(in_time.get(), same.get()));
    }

    const Statement& s_;
    Term sched_;
    std::vector<Path> paths_;
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
