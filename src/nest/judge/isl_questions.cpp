#include "nest/judge/isl_questions.hpp"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/val.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "nest/judge/isl_judge.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

// The sets of isl as owned values, in the context of this thread.
struct FreeIsl {
    void operator()(isl_ctx* c) const { isl_ctx_free(c); }
    void operator()(isl_set* s) const { isl_set_free(s); }
};
using IslSet = std::unique_ptr<isl_set, FreeIsl>;

// isl reports errors by its answers and continues.
isl_ctx* isl_context() {
    thread_local const std::unique_ptr<isl_ctx, FreeIsl> context = [] {
        std::unique_ptr<isl_ctx, FreeIsl> made(isl_ctx_alloc());
        isl_options_set_on_error(made.get(), ISL_ON_ERROR_CONTINUE);
        return made;
    }();
    return context.get();
}

IslSet read_set(const std::string& text) {
    IslSet s(isl_set_read_from_str(isl_context(), text.c_str()));
    if (!s) throw InternalFault("isl cannot read the set " + text);
    return s;
}

bool yes(isl_bool answer) {
    if (answer == isl_bool_error) throw InternalFault("isl could not answer");
    return answer == isl_bool_true;
}

// Remembers answers, for each thread, because isl's context belongs to a thread.
template <class Ask>
auto answered(std::string question, const Ask& ask) {
    using Answer = decltype(ask());
    constexpr std::size_t most = 1 << 16;
    thread_local std::unordered_map<std::string, Answer> known;
    if (auto it = known.find(question); it != known.end()) return it->second;
    Answer answer = ask();
    if (known.size() >= most) known.clear();
    return known.emplace(std::move(question), std::move(answer)).first->second;
}

VariableMask variables_of(const IslUnion& sets) {
    VariableMask all = 0;
    for (const Conjunction& c : sets)
        for (const IslText& t : c) all |= t.over;
    return all;
}

}  // namespace

IslQuestions::IslQuestions(std::vector<IslVariable> variables) : variables_(std::move(variables)) {
    require(variables_.size() <= 64, "more variables than a mask holds");
}

std::string IslQuestions::tuple(VariableMask over) const {
    std::string text = "[";
    for (std::size_t i = 0; i < variables_.size(); ++i)
        if (over >> i & 1) text += (text.size() > 1 ? ", " : "") + variables_[i].name;
    return text + "]";
}

std::string IslQuestions::box(VariableMask over) const {
    std::string text = "1 = 1";
    for (std::size_t i = 0; i < variables_.size(); ++i)
        if (over >> i & 1) text += " and 0 <= " + variables_[i].name + " < " + std::to_string(variables_[i].extent);
    return text;
}

bool IslQuestions::possible_together(const std::vector<const IslText*>& group, VariableMask over) const {
    std::string text = "{ " + tuple(over) + " : " + box(over);
    for (const IslText* c : group) text += " and " + c->text;
    text += " }";
    return answered(text, [&] { return !yes(isl_set_is_empty(read_set(text).get())); });
}

bool IslQuestions::possible(const Conjunction& conditions) const {
    std::vector<bool> taken(conditions.size(), false);
    for (std::size_t i = 0; i < conditions.size(); ++i) {
        if (taken[i]) continue;
        VariableMask over = conditions[i].over;
        taken[i] = true;
        for (bool grew = true; grew;) {
            grew = false;
            for (std::size_t j = i + 1; j < conditions.size(); ++j)
                if (!taken[j] && (conditions[j].over & over) != 0) over |= conditions[j].over, taken[j] = grew = true;
        }
        std::vector<const IslText*> group;
        for (std::size_t j = i; j < conditions.size(); ++j)
            if ((conditions[j].over & over) != 0 || j == i) {
                bool again = std::any_of(group.begin(), group.end(), [&](const IslText* t) { return *t == conditions[j]; });
                if (!again) group.push_back(&conditions[j]);
            }
        if (!possible_together(group, over)) return false;
    }
    return true;
}

std::string IslQuestions::set_text(const IslUnion& sets, VariableMask over) const {
    std::vector<std::string> all;
    for (const Conjunction& c : sets) {
        std::string text = tuple(over) + " : " + box(over);
        for (const IslText& t : c) text += " and " + t.text;
        all.push_back(std::move(text));
    }
    return "{ " + join(all, "; ") + " }";
}

// Variables in neither set are free in both.
bool IslQuestions::equal(const IslUnion& a, const IslUnion& b) const {
    VariableMask over = variables_of(a) | variables_of(b);
    std::string first = set_text(a, over), second = set_text(b, over);
    if (first == second) return true;
    return answered(first + " = " + second, [&] { return yes(isl_set_is_equal(read_set(first).get(), read_set(second).get())); });
}

bool IslQuestions::strictly_within(const IslUnion& part, const IslUnion& whole) const {
    VariableMask over = variables_of(part) | variables_of(whole);
    std::string first = set_text(part, over), second = set_text(whole, over);
    return answered(first + " < " + second, [&] { return yes(isl_set_is_strict_subset(read_set(first).get(), read_set(second).get())); });
}

IslText related(const IslText& a, const char* relation, const IslText& b) { return {a.text + relation + b.text, a.over | b.over}; }

IslText axis_text(const Term& axis, const std::function<IslText(const std::string&)>& name_of, Conjunction& conditions) {
    if (axis.size() == 0) return axis.integer() ? IslText{to_string(axis), 0} : axis_name(axis)->extent == 1 ? IslText{"0", 0} : name_of(axis_name(axis)->name);
    auto at = [&](std::size_t i) { return axis_text(axis[i], name_of, conditions); };
    auto block = [](const IslText& a, std::int64_t k) { return IslText{"floor((" + a.text + ")/" + std::to_string(k) + ")", a.over}; };
    if (axis.is("quo", 2)) return block(at(0), *axis[1].integer());
    if (axis.is("rem", 2)) {
        IslText inner = at(0);
        return {"((" + inner.text + ") mod " + to_string(axis[1]) + ")", inner.over};
    }
    if (axis.is("pair", 2)) {
        IslText first = at(0), second = at(1);
        return {"(" + std::to_string(axis_extent(axis[1])) + "*" + first.text + " + " + second.text + ")", first.over | second.over};
    }
    if (axis.is("span", 3)) {
        IslText inner = at(0);
        conditions.push_back({to_string(axis[1]) + " <= " + inner.text + " < " + to_string(axis[2]), inner.over});
        return {"(" + inner.text + " - " + to_string(axis[1]) + ")", inner.over};
    }
    std::int64_t g = *axis[0].integer();
    IslText a = block(at(1), axis_extent(axis[1]) / g), b = block(at(2), axis_extent(axis[2]) / g);
    conditions.push_back(related(a, " = ", b));
    return a;
}

namespace {

// Unions of restrictions over iterators given as leaves.
struct Restricted {
    Restricted(const std::vector<Term>& iterators) : questions(variables(iterators)), leaves(iterators) {}
    static std::vector<IslVariable> variables(const std::vector<Term>& iterators) {
        std::vector<IslVariable> all;
        for (const Term& leaf : iterators) all.push_back({axis_name(leaf)->name, axis_name(leaf)->extent});
        return all;
    }
    Conjunction conditions(const Restrictions& part) const {
        Conjunction all;
        auto name_of = [&](const std::string& name) {
            std::size_t i = 0;
            while (axis_name(leaves[i])->name != name) ++i;
            return IslText{name, VariableMask{1} << i};
        };
        for (const Term& r : part) axis_text(r, name_of, all);
        return all;
    }
    IslUnion sets(const std::vector<Restrictions>& parts) const {
        IslUnion all;
        for (const Restrictions& part : parts) all.push_back(conditions(part));
        return all;
    }
    IslQuestions questions;
    const std::vector<Term>& leaves;
};

}  // namespace

bool isl_equal(const std::vector<Term>& iterators, const std::vector<Restrictions>& a, const std::vector<Restrictions>& b) {
    Restricted over(iterators);
    return over.questions.equal(over.sets(a), over.sets(b));
}

bool isl_disjoint(const std::vector<Term>& iterators, const std::vector<Restrictions>& a, const std::vector<Restrictions>& b) {
    Restricted over(iterators);
    for (const Restrictions& x : a)
        for (const Restrictions& y : b) {
            Conjunction both = over.conditions(x);
            for (IslText& c : over.conditions(y)) both.push_back(std::move(c));
            if (over.questions.possible(both)) return false;
        }
    return true;
}

namespace {

constexpr unsigned long max_operations = 3'000'000;  // of one question: a few seconds

struct PointFree {
    void operator()(isl_point* p) const { isl_point_free(p); }
};
struct ValueFree {
    void operator()(isl_val* v) const { isl_val_free(v); }
};
// Lets a question take so many operations and no more, and forgets its errors.
struct Effort {
    Effort() {
        isl_ctx_reset_error(isl_context());
        isl_ctx_reset_operations(isl_context());
        isl_ctx_set_max_operations(isl_context(), max_operations);
    }
    ~Effort() {
        isl_ctx_set_max_operations(isl_context(), 0);
        isl_ctx_reset_error(isl_context());
    }
};

std::string conjunction(const SizeConditions& conditions) {
    std::string text;
    for (const std::string& c : conditions) text += (text.empty() ? "" : " and ") + c;
    return text.empty() ? "1 = 1" : text;
}

std::string set_text(const SizeSpace& space, const std::vector<SizeConditions>& alternatives) {
    const std::string variables = "[" + join(space.variables, ", ") + "]";
    std::vector<std::string> parts;
    for (const SizeConditions& c : alternatives) parts.push_back(variables + " : " + conjunction(c));
    if (parts.empty()) parts.push_back(variables + " : 1 = 0");
    return "[" + join(space.parameters, ", ") + "] -> { " + join(parts, "; ") + " }";
}

IslSet read(const std::string& text) { return IslSet(isl_set_read_from_str(isl_context(), text.c_str())); }

SizePoint values_of(const SizeSpace& space, isl_point* point) {
    SizePoint all;
    const auto take = [&](isl_dim_type type, const std::vector<std::string>& names) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            const std::unique_ptr<isl_val, ValueFree> v(isl_point_get_coordinate_val(point, type, static_cast<int>(i)));
            if (v) all[names[i]] = isl_val_get_num_si(v.get());
        }
    };
    take(isl_dim_param, space.parameters);
    take(isl_dim_set, space.variables);
    return all;
}

// A point of the set, with small parameters where there is one.
SizePoint example_of(const SizeSpace& space, const isl_set* set) {
    for (const long bound : {8L, 16L, 64L, 1024L, 0L}) {
        IslSet some(isl_set_copy(const_cast<isl_set*>(set)));
        if (bound > 0) {
            SizeConditions small;
            for (const auto* names : {&space.parameters, &space.variables})
                for (const std::string& name : *names) small.push_back("-" + std::to_string(bound) + " <= " + name + " <= " + std::to_string(bound));
            some.reset(isl_set_intersect(some.release(), read(set_text(space, {small})).release()));
        }
        const std::unique_ptr<isl_point, PointFree> point(some ? isl_set_sample_point(some.release()) : nullptr);
        if (point && isl_point_is_void(point.get()) == isl_bool_false) return values_of(space, point.get());
    }
    return {};
}

SizeAnswer is_empty(const SizeSpace& space, const isl_set* set) {
    if (!set) return {};
    const isl_bool empty = isl_set_is_empty(const_cast<isl_set*>(set));
    if (empty == isl_bool_error) return {};
    if (empty == isl_bool_true) return {SizeAnswer::Kind::yes, {}};
    return {SizeAnswer::Kind::no, example_of(space, set)};
}

template <class Ask>
SizeAnswer answered_within_limits(std::string question, const Ask& ask) {
    return answered(std::move(question), [&]() -> SizeAnswer {
        const Effort effort;
        return ask();
    });
}

}  // namespace

SizeAnswer never(const SizeSpace& space, const SizeConditions& conditions) {
    const std::string text = set_text(space, {conditions});
    return answered_within_limits(text, [&] { return is_empty(space, read(text).get()); });
}

SizeAnswer always_one_of(const SizeSpace& space, const SizeConditions& conditions, const std::vector<SizeConditions>& alternatives) {
    const std::string all = set_text(space, {conditions}), covered = set_text(space, alternatives);
    return answered_within_limits(all + " within " + covered, [&]() -> SizeAnswer {
        IslSet whole = read(all), part = read(covered);
        if (!whole || !part) return {};
        const IslSet left(isl_set_subtract(whole.release(), part.release()));
        return is_empty(space, left.get());
    });
}

SizeAnswer always_some(const SizeSpace& space, const SizeConditions& on_parameters, const std::vector<SizeConditions>& alternatives) {
    const std::string wanted = set_text({space.parameters, {}}, {on_parameters}), given = set_text(space, alternatives);
    return answered_within_limits(wanted + " has " + given, [&]() -> SizeAnswer {
        IslSet whole = read(wanted), points = read(given);
        if (!whole || !points) return {};
        whole.reset(isl_set_params(whole.release()));
        const IslSet left(isl_set_from_params(isl_set_subtract(whole.release(), isl_set_params(points.release()))));
        return is_empty({space.parameters, {}}, left.get());
    });
}

}  // namespace loopegg
