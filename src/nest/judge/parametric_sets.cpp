#include "nest/judge/parametric_sets.hpp"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/val.h>

#include <memory>
#include <unordered_map>

#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr unsigned long most_operations = 3'000'000;  // of one question: a few seconds

struct ContextFree {
    void operator()(isl_ctx* c) const { isl_ctx_free(c); }
};
struct SetFree {
    void operator()(isl_set* s) const { isl_set_free(s); }
};
struct PointFree {
    void operator()(isl_point* p) const { isl_point_free(p); }
};
struct ValueFree {
    void operator()(isl_val* v) const { isl_val_free(v); }
};
using Set = std::unique_ptr<isl_set, SetFree>;

isl_ctx* context() {
    thread_local std::unique_ptr<isl_ctx, ContextFree> ctx = [] {
        std::unique_ptr<isl_ctx, ContextFree> c(isl_ctx_alloc());
        isl_options_set_on_error(c.get(), ISL_ON_ERROR_CONTINUE);
        return c;
    }();
    return ctx.get();
}

// Lets a question take so many operations and no more, and forgets its errors.
struct Effort {
    Effort() {
        isl_ctx_reset_error(context());
        isl_ctx_reset_operations(context());
        isl_ctx_set_max_operations(context(), most_operations);
    }
    ~Effort() {
        isl_ctx_set_max_operations(context(), 0);
        isl_ctx_reset_error(context());
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

Set read(const std::string& text) { return Set(isl_set_read_from_str(context(), text.c_str())); }

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
        Set some(isl_set_copy(const_cast<isl_set*>(set)));
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

// Remembers answers, for each thread, because isl's context belongs to a thread.
template <class Ask>
SizeAnswer answered(std::string question, const Ask& ask) {
    constexpr std::size_t most = 1 << 15;
    thread_local std::unordered_map<std::string, SizeAnswer> known;
    if (auto it = known.find(question); it != known.end()) return it->second;
    const Effort effort;
    SizeAnswer answer = ask();
    if (known.size() >= most) known.clear();
    return known.emplace(std::move(question), std::move(answer)).first->second;
}

}  // namespace

SizeAnswer never(const SizeSpace& space, const SizeConditions& conditions) {
    const std::string text = set_text(space, {conditions});
    return answered(text, [&] { return is_empty(space, read(text).get()); });
}

SizeAnswer always_one_of(const SizeSpace& space, const SizeConditions& conditions, const std::vector<SizeConditions>& alternatives) {
    const std::string all = set_text(space, {conditions}), covered = set_text(space, alternatives);
    return answered(all + " within " + covered, [&]() -> SizeAnswer {
        Set whole = read(all), part = read(covered);
        if (!whole || !part) return {};
        const Set left(isl_set_subtract(whole.release(), part.release()));
        return is_empty(space, left.get());
    });
}

SizeAnswer always_some(const SizeSpace& space, const SizeConditions& on_parameters, const std::vector<SizeConditions>& alternatives) {
    const std::string wanted = set_text({space.parameters, {}}, {on_parameters}), given = set_text(space, alternatives);
    return answered(wanted + " has " + given, [&]() -> SizeAnswer {
        Set whole = read(wanted), points = read(given);
        if (!whole || !points) return {};
        whole.reset(isl_set_params(whole.release()));
        const Set left(isl_set_from_params(isl_set_subtract(whole.release(), isl_set_params(points.release()))));
        return is_empty({space.parameters, {}}, left.get());
    });
}

}  // namespace loopegg
