#include "nest/judge/isl_judge.hpp"

#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "nest/judge/isl_questions.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

// One path of the schedule as it is written: the axes of its loops and, as numbers, the side that the path takes at every cat.
struct Path {
    std::vector<Term> axes;
    std::vector<std::pair<std::size_t, std::string>> apart;  // dimensions whose iterations run at once, and the loop's kind
};

void collect(const Term& sched, Path path, std::vector<Path>& out) {
    if (sched.size() == 0) {
        out.push_back(std::move(path));
    } else if (sched.is("cat", 2)) {
        Path second = path;
        path.axes.emplace_back(std::int64_t{0});
        second.axes.emplace_back(std::int64_t{1});
        collect(sched[0], std::move(path), out);
        collect(sched[1], std::move(second), out);
    } else {
        const std::string& op = sched.op().text();
        if (is_loop_operator(op)) {
            const bool summed = op == "bind" && is_tensor_place(sched[0]);  // an instruction of tensor cores adds its steps up
            if (op == "par" || op == "vec" || (op == "bind" && !summed)) path.apart.emplace_back(path.axes.size(), op);
            path.axes.push_back(loop_axis(sched));
        }
        collect(sched[sched.size() - 1], std::move(path), out);
    }
}

// Simpler axes that have equal values at two instances exactly when `axes` have: a number is known by its quotient and remainder, a pair by its two
// axes, and a diagonal is the block of both of its axes. isl would find the same, slowly.
std::vector<Term> decompose_axes(std::span<const Term> axes) {
    std::vector<Term> all(axes.begin(), axes.end());
    for (std::size_t i = 0; i < all.size();) {
        const Term axis = all[i];
        bool whole = false;
        if (axis.is("pair", 2)) {
            all[i] = axis[0];
            all.push_back(axis[1]);
            whole = true;
        } else if (axis.is("diag", 3)) {
            auto block = [&](std::size_t child) {
                std::int64_t size = axis_extent(axis[child]) / *axis[0].integer();
                return size == 1 ? axis[child] : Term("quo", {axis[child], Term(size)});
            };
            all[i] = block(1);
            all.push_back(block(2));
            whole = true;
        } else if (axis.is("quo", 2)) {
            auto rest = std::find(all.begin(), all.end(), Term("rem", {axis[0], axis[1]}));
            whole = rest != all.end();
            if (whole) all[i] = axis[0], all.erase(rest);
        }
        i = whole ? 0 : i + 1;
    }
    return all;
}

// An instance on a path: its place in time, and where it is defined. The instance is x, or x' (`other`), whose iterators in `same` equal those of x.
struct Place {
    const Path* path = nullptr;
    bool other = false;
    VariableMask same = 0;
    std::vector<IslText> time{};
    Conjunction conditions{};
};

bool has_partial(const Term& t) {
    return t.is("partial", 3) || std::any_of(t.children().begin(), t.children().end(), [](const Term& c) { return has_partial(c); });
}

bool are_fixed(const IslText& a, const IslText& b) { return a.over == 0 && b.over == 0; }

// A question about pairs of instances asks whether there are instances x and x' for which some conditions hold. Every "before" is divided into its cases,
// and iterators that are known to be equal in both have one name. So each question is small, and often it was asked already.
class Judge {
public:
    Judge(const Statement& s, const Term& sched) : s_(s), sched_(complete(s, sched)), questions_(variables(s)) {
        collect(sched_, {}, paths_);
        for (const Path& p : paths_) depth_ = std::max(depth_, p.axes.size());
        // Iterators of extent 1 are left out: they contribute nothing and cost dimensions.
        for (const Iterator& it : s.axes)
            if (it.extent > 1) names_.push_back(it.name);
        for (const Path& p : paths_) places_.push_back(place(p, false, 0));
    }

    IslUnion domain() const {
        IslUnion all;
        for (const Place& p : places_) all.push_back(p.conditions);
        return all;
    }
    IslUnion sets(const std::vector<Restrictions>& parts) const {
        IslUnion all;
        for (const Restrictions& part : parts) {
            all.emplace_back();
            for (const Term& r : part)
                axis_text(
                    r, [&](const std::string& name) { return iterator(index_of(name), false, 0); }, all.back());
        }
        return all;
    }
    const IslQuestions& questions() const { return questions_; }

    std::optional<std::string> answer(const JudgeOptions& options) const {
        if (visits_twice()) return "visits some instances twice";
        if (!options.may_restrict && !questions_.equal(domain(), {{}})) return "leaves instances out";
        if (!injective()) return "runs two instances at one time: some digit is in no loop";
        if (reverses(options.strict_fp)) return options.strict_fp ? "takes a sum in another order" : "reverses a dependence";
        if (options.strict_fp && s_.combine != Combine::assign && has_partial(sched_)) return "takes a sum in another order (partial)";
        for (std::size_t p = 0; p < paths_.size(); ++p)
            for (auto& [dimension, kind] : paths_[p].apart)
                if (conflicts(p, dimension)) return "runs instances at once (" + kind + ") that write one output element or wait for each other";
        return {};
    }

private:
    static std::vector<IslVariable> variables(const Statement& s) {
        std::vector<IslVariable> all;
        for (const char* mark : {"", "_"})
            for (const Iterator& it : s.axes)
                if (it.extent > 1) all.push_back({it.name + mark, it.extent});
        return all;
    }

    std::size_t index_of(std::string_view name) const { return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin()); }

    // The iterator i of x, or of x' when `other`. The iterators of x' in `same` are those of x.
    IslText iterator(std::size_t i, bool other, VariableMask same) const {
        if (!other || (same >> i & 1)) return {names_[i], VariableMask{1} << i};
        return {names_[i] + "_", VariableMask{1} << (i + names_.size())};
    }

    Place place(const Path& path, bool other, VariableMask same) const {
        Place made{&path, other, same};
        for (const Term& axis : path.axes) made.time.push_back(text_at(made, axis, made.conditions));
        made.time.resize(depth_, {"0", 0});
        return made;
    }
    IslText text_at(const Place& at, const Term& axis, Conjunction& conditions) const {
        return axis_text(
            axis, [&](const std::string& name) { return iterator(index_of(name), at.other, at.same); }, conditions);
    }

    IslText index(const Affine& d, bool other, VariableMask same) const {
        IslText sum{std::to_string(d.offset), 0};
        for (std::size_t i = 0; i < d.coefficients.size(); ++i) {
            if (d.coefficients[i] == 0 || s_.axes[i].extent <= 1) continue;
            IslText it = iterator(index_of(s_.axes[i].name), other, same);
            sum = {sum.text + " + " + std::to_string(d.coefficients[i]) + "*" + it.text, sum.over | it.over};
        }
        return sum;
    }

    // x touches by one access the element that x' touches by another: the iterators that must be equal for this, and the two accesses.
    struct Meeting {
        VariableMask same = 0;
        const Access *first = nullptr, *second = nullptr;
    };
    static std::optional<std::size_t> alone(const Affine& d) {
        std::optional<std::size_t> found;
        for (std::size_t i = 0; i < d.coefficients.size(); ++i) {
            if (d.coefficients[i] == 0) continue;
            if (found || d.coefficients[i] != 1) return {};
            found = i;
        }
        return found;
    }
    Meeting meeting(const Access& first, const Access& second) const {
        Meeting m{0, &first, &second};
        for (std::size_t d = 0; d < first.index.size(); ++d) {
            auto a = alone(first.index[d]), b = alone(second.index[d]);
            if (a && b && *a == *b && first.index[d].offset == second.index[d].offset && s_.axes[*a].extent > 1)
                m.same |= VariableMask{1} << index_of(s_.axes[*a].name);
        }
        return m;
    }
    void add_meeting(const Meeting& m, VariableMask same, Conjunction& conditions) const {
        for (std::size_t d = 0; d < m.first->index.size(); ++d) {
            IslText a = index(m.first->index[d], false, same), b = index(m.second->index[d], true, same);
            if (!(a == b)) conditions.push_back(related(a, " = ", b));
        }
    }

    static void add_places(const Place& a, const Place& b, Conjunction& conditions) {
        conditions.insert(conditions.end(), a.conditions.begin(), a.conditions.end());
        conditions.insert(conditions.end(), b.conditions.begin(), b.conditions.end());
    }

    // Adds the condition that both times are equal before this dimension; false when that is impossible.
    bool add_equal(const Place& a, const Place& b, std::size_t upto, Conjunction& conditions) const {
        if (a.path == b.path) {
            Conjunction known;  // where the axes are defined; the places have these conditions already
            for (const Term& axis : decompose_axes(std::span(a.path->axes).subspan(0, std::min(upto, a.path->axes.size())))) {
                IslText first = text_at(a, axis, known), second = text_at(b, axis, known);
                if (!(first == second)) conditions.push_back(related(first, " = ", second));
            }
            return true;
        }
        for (std::size_t d = 0; d < upto; ++d) {
            if (a.time[d] == b.time[d]) continue;
            if (are_fixed(a.time[d], b.time[d])) return false;
            conditions.push_back(related(a.time[d], " = ", b.time[d]));
        }
        return true;
    }

    // Whether x can be before x' in the naive order while `test(case, place')` holds. There is one case for each iterator i: the iterators before i are
    // equal, and i is smaller. `test` gets the conditions so far and the mask of equal iterators.
    template <class Test>
    bool naive_case(VariableMask same, const Test& test) const {
        for (std::size_t i = 0; i < names_.size(); ++i) {
            if (same >> i & 1) continue;
            VariableMask equal = same | ((VariableMask{1} << i) - 1);
            if (test(Conjunction{related(iterator(i, false, equal), " < ", iterator(i, true, equal))}, equal)) return true;
        }
        return false;
    }

    bool visits_twice() const {
        for (std::size_t p = 0; p < places_.size(); ++p)
            for (std::size_t q = p + 1; q < places_.size(); ++q) {
                Conjunction both;
                add_places(places_[p], places_[q], both);
                if (questions_.possible(both)) return true;
            }
        return false;
    }

    // Two paths differ in the place of some cat; on one path, equal times must mean equal instances.
    bool injective() const {
        for (std::size_t p = 0; p < paths_.size(); ++p)
            if (naive_case(0, [&](Conjunction conditions, VariableMask equal) {
                    Place other = place(paths_[p], true, equal);
                    add_places(places_[p], other, conditions);
                    return add_equal(places_[p], other, depth_, conditions) && questions_.possible(conditions);
                }))
                return false;
        return true;
    }

    // The pairs of accesses through which an instance depends on an earlier one.
    std::vector<Meeting> dependences(bool writes) const {
        std::vector<Meeting> all;
        if (writes) all.push_back(meeting(s_.write, s_.write));
        for (const Access& r : s_.reads)
            if (r.buffer == 0) all.push_back(meeting(s_.write, r)), all.push_back(meeting(r, s_.write));
        return all;
    }

    // Whether some x that the naive order puts first is not before x' in the schedule: some dimension of time puts x' before x, or none distinguishes them.
    bool reverses(bool strict) const {
        for (const Meeting& m : dependences(s_.combine == Combine::assign || strict))
            for (std::size_t p = 0; p < paths_.size(); ++p)
                for (std::size_t q = 0; q < paths_.size(); ++q)
                    if (naive_case(m.same, [&](Conjunction conditions, VariableMask equal) {
                            Place other = place(paths_[q], true, equal);
                            add_places(places_[p], other, conditions);
                            add_meeting(m, equal, conditions);
                            return not_before(places_[p], other, conditions);
                        }))
                        return true;
        return false;
    }

    bool not_before(const Place& first, const Place& second, const Conjunction& conditions) const {
        for (std::size_t d = 0; d <= depth_; ++d) {
            Conjunction here = conditions;
            if (!add_equal(first, second, d, here)) return false;
            if (d < depth_) {
                const IslText &a = second.time[d], &b = first.time[d];
                if (a == b || (are_fixed(a, b) && std::stoll(a.text) >= std::stoll(b.text))) continue;
                here.push_back(related(a, " < ", b));
            }
            if (questions_.possible(here)) return true;
        }
        return false;
    }

    // Whether two instances touch one element and this dimension of time is the first that distinguishes them.
    bool conflicts(std::size_t path, std::size_t dimension) const {
        const Place& first = places_[path];
        for (const Meeting& m : dependences(true))
            for (const Path& q : paths_) {
                Place second = place(q, true, m.same);
                Conjunction conditions;
                if (!add_equal(first, second, dimension, conditions) || first.time[dimension] == second.time[dimension]) continue;
                add_places(first, second, conditions);
                add_meeting(m, m.same, conditions);
                for (const char* relation : {" < ", " > "}) {
                    Conjunction here = conditions;
                    here.push_back(related(first.time[dimension], relation, second.time[dimension]));
                    if (questions_.possible(here)) return true;
                }
            }
        return false;
    }

    const Statement& s_;
    Term sched_;
    IslQuestions questions_;
    std::vector<Path> paths_;
    std::vector<Place> places_;  // of x, one for each path
    std::vector<std::string> names_;
    std::size_t depth_ = 0;
};

}  // namespace

std::optional<std::string> isl_judge(const Statement& statement, const Term& sched, const JudgeOptions& options) {
    return Judge(statement, sched).answer(options);
}

std::optional<std::string> isl_judge(const Term& nest, const JudgeOptions& options) {
    NestParts parts = nest_parts(nest);
    return isl_judge(statement_of(parts.statement), parts.schedule, options);
}

bool isl_same_domain(const Statement& statement, const Term& a, const Term& b) {
    Judge first(statement, a);
    return first.questions().equal(first.domain(), Judge(statement, b).domain());
}

bool isl_restricts(const Statement& statement, const Term& whole, const Term& part) {
    Judge first(statement, whole);
    return first.questions().strictly_within(Judge(statement, part).domain(), first.domain());
}

bool isl_visits(const Statement& statement, const Term& sched, const std::vector<Restrictions>& parts) {
    Judge judge(statement, sched);
    return judge.questions().equal(judge.domain(), judge.sets(parts));
}

}  // namespace loopegg
