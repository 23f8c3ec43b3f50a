#include "nest/judge/isl_questions.hpp"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/set.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

struct ContextFree {
    void operator()(isl_ctx* c) const { isl_ctx_free(c); }
};
struct SetFree {
    void operator()(isl_set* s) const { isl_set_free(s); }
};
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

// Remembers answers, for each thread, because isl's context belongs to a thread.
template <class Ask>
bool answered(std::string question, const Ask& ask) {
    constexpr std::size_t most = 1 << 17;
    thread_local std::unordered_map<std::string, bool> known;
    if (auto it = known.find(question); it != known.end()) return it->second;
    bool answer = ask();
    if (known.size() >= most) known.clear();
    return known.emplace(std::move(question), answer).first->second;
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

}  // namespace loopegg
