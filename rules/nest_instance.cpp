#include "rules/nest_instance.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/sexpr.hpp"
#include "egraph/rewrite.hpp"
#include "nest/term/facts.hpp"
#include "rules/nest_language.hpp"

namespace loopegg {
namespace {

using Random = std::mt19937_64;

template <class T>
const T& pick(const std::vector<T>& from, Random& random) {
    return from[random() % from.size()];
}

class Drawing {
public:
    Drawing(const Term& pattern, const char* statement, Random& random) : random_(random), statement_(statement_of(parse_term(statement))), pattern_(pattern) {
        for (const Iterator& it : statement_.axes)
            if (it.extent > 1) add_digits(axis_leaf(it.name, it.extent));
        std::shuffle(digits_.begin(), digits_.end(), random_);
        if (digits_.size() > 2 && random_() % 4 == 0) {
            Term fused("pair", {digits_[0], digits_[1]});
            digits_.erase(digits_.begin());
            digits_[0] = fused;
        }
        // The recurrence runs in one order only, so the loops before and after the pattern must respect that order.
        if (statement_.combine == Combine::assign && statement_.reads.size() > 1)
            std::stable_sort(digits_.begin(), digits_.end(), [](const Term& a, const Term& b) { return rank(a) < rank(b); });
    }

    // None when the pattern cannot be drawn over this statement.
    std::optional<Term> draw() {
        std::string kind = kind_of(pattern_);
        count_axis_variables(pattern_, "");
        if (axis_variables_ > digits_.size()) return {};
        if (kind != "nest" && digits_.size() > axis_variables_) prefix_ = random_() % (digits_.size() - axis_variables_ + 1);
        next_ = prefix_;
        Term made = fill(pattern_, kind);
        if (!made) return {};
        if (kind == "nest") return made;
        if (kind == "statement") return Term("nest", {made, naive_schedule(statement_)});
        if (kind != "axis" && kind != "schedule") return {};
        Term sched = kind == "axis" ? Term("at", {made, rest()}) : made;
        for (std::size_t i = prefix_; i-- > 0;) sched = Term("at", {digits_[i], sched});
        return Term("nest", {statement_.term, with_missing(sched)});
    }

    // Which of the pattern's axes are free to run in any order (p) and which are not (o), as a word: "po".
    std::string roles() const {
        std::string word;
        for (const auto& [variable, axis] : bound_) {
            if (!axis || !axes_.contains(variable)) continue;
            auto leaves = iterators_of(axis);
            word +=
                std::all_of(leaves.begin(), leaves.end(), [](const Term& leaf) { return role_of(axis_name(leaf)->name) == AxisRole::parallel; }) ? 'p' : 'o';
        }
        return word;
    }

private:
    static int rank(const Term& axis) {
        auto leaves = iterators_of(axis);
        bool inner = axis.is("rem", 2);
        return (axis_name(leaves[0])->name == "t" ? 0 : 2) + (inner ? 1 : 0);
    }

    void add_digits(const Term& leaf) {
        std::int64_t extent = axis_extent(leaf);
        std::vector<std::int64_t> factors;
        for (std::int64_t k = 2; k < extent; ++k)
            if (extent % k == 0) factors.push_back(k);
        bool uneven = extent > 3 && random_() % 8 == 0;
        if (factors.empty() || random_() % 3 != 0) {
            if (!uneven) return digits_.push_back(leaf);
            factors = {3};
        }
        std::int64_t k = pick(factors, random_);
        digits_.push_back(Term("quo", {leaf, Term(k)}));
        digits_.push_back(Term("rem", {leaf, Term(k)}));
    }

    static std::string kind_of(const Term& pattern) {
        if (is_variable(pattern.op()) && pattern.size() == 0) return "schedule";
        for (const OperatorKind& op : nest_language().operators)
            if (op.name == pattern.op().text() && op.children.size() == pattern.size()) return op.kind;
        return nest_language().leaf_kind(pattern.op().text()).value_or("");
    }
    static std::vector<std::string> child_kinds(const Term& pattern) {
        for (const OperatorKind& op : nest_language().operators)
            if (op.name == pattern.op().text() && op.children.size() == pattern.size()) return op.children;
        return std::vector<std::string>(pattern.size());
    }

    void count_axis_variables(const Term& pattern, const std::string& kind) {
        if (pattern.size() == 0) {
            if (is_variable(pattern.op()) && kind == "axis" && bound_.emplace(pattern.op(), Term()).second) ++axis_variables_, axes_.insert(pattern.op());
            return;
        }
        auto kinds = child_kinds(pattern);
        for (std::size_t i = 0; i < pattern.size(); ++i) count_axis_variables(pattern[i], kinds[i]);
    }

    // Two lists that share no variable: the two parts of a domain that was cut.
    Term fill_cat(const Term& pattern) {
        std::vector<std::size_t> wide;
        for (std::size_t i = prefix_; i < digits_.size(); ++i)
            if (axis_extent(digits_[i]) > 1) wide.push_back(i);
        if (wide.empty()) return {};
        std::size_t cut = pick(wide, random_);
        Term axis = digits_[cut];
        std::int64_t extent = axis_extent(axis), at = extent % 2 == 0 ? extent / 2 : 1;
        std::array<Term, 2> parts;
        for (std::size_t part : {0u, 1u}) {
            digits_[cut] = part == 0 ? Term("span", {axis, Term(std::int64_t{0}), Term(at)}) : Term("span", {axis, Term(at), Term(extent)});
            next_ = prefix_;
            parts[part] = fill(pattern[part], "schedule");
            if (!parts[part]) return {};
        }
        return Term("cat", {parts[0], parts[1]});
    }

    static bool shares_lists(const Term& cat) {
        auto first = variables_of(cat[0]), second = variables_of(cat[1]);
        return std::any_of(first.begin(), first.end(), [&](Symbol v) { return std::find(second.begin(), second.end(), v) != second.end(); });
    }

    // Adds loops around the list for the digits that no loop of the list walks.
    Term with_missing(Term sched) const {
        for (int round = 0; round < 8; ++round) {
            NestAnalysis facts;
            const ScheduleFact& fact = facts.schedule_of(sched);
            std::vector<AxisDigit> gaps;
            auto gaps_of = [&](const Term& base, std::int64_t extent) {
                std::int64_t reach = 1;
                for (const OpenDigits& o : fact.open) {
                    if (o.base != base) continue;
                    if (o.stride > reach) gaps.push_back({base, extent, reach, o.stride});
                    reach = o.limit;
                }
                if (reach < extent) gaps.push_back({base, extent, reach, extent});
            };
            for (const OpenDigits& o : fact.open)
                if (o.base.size() > 0) gaps_of(o.base, o.base_extent);
            if (gaps.empty())
                for (const Iterator& it : statement_.axes)
                    if (it.extent > 1) gaps_of(axis_leaf(it.name, it.extent), it.extent);
            if (gaps.empty()) return sched;
            for (const AxisDigit& gap : gaps) sched = Term("at", {to_term(gap), sched});
        }
        return sched;
    }

    Term fill(const Term& pattern, const std::string& kind) {
        if (pattern.is("cat", 2) && !shares_lists(pattern)) return fill_cat(pattern);
        if (pattern.size() > 0) {
            auto kinds = child_kinds(pattern);
            std::vector<Term> children(pattern.size());
            // Axes are drawn before numbers, so that factors fit the axes. Lists come last, because they take the loops that are left.
            for (int round = 0; round < 3; ++round)
                for (std::size_t i = 0; i < pattern.size(); ++i) {
                    int when = kinds[i] == "number" ? 1 : kinds[i] == "schedule" ? 2 : 0;
                    if (when != round) continue;
                    children[i] = fill(pattern[i], kinds[i]);
                    if (!children[i]) return {};
                }
            return Term(pattern.op(), std::move(children));
        }
        if (!is_variable(pattern.op())) return pattern;
        Term& slot = bound_[pattern.op()];
        if (!slot) slot = draw_variable(kind);
        return slot;
    }

    Term draw_variable(const std::string& kind) {
        if (kind == "axis") {
            if (next_ >= digits_.size()) return {};
            last_axis_ = digits_[next_++];
            return last_axis_;
        }
        if (kind == "number") {
            std::int64_t extent = last_axis_ ? axis_extent(last_axis_) : 4;
            std::vector<std::int64_t> choices{2, extent};
            for (std::int64_t k = 2; k < extent; ++k)
                if (extent % k == 0 || k < 4) choices.push_back(k);
            return Term(pick(choices, random_));
        }
        if (kind == "schedule") return rest();
        if (kind == "statement") return statement_.term;
        if (kind == "buffer") return Term(statement_.buffers[random_() % statement_.buffers.size()].name);
        if (kind == "how") return pick(std::vector{Term("repeat"), Term("zero"), Term("pointwise")}, random_);
        if (kind == "place") return Term(random_() % 2 ? "blockIdx.x" : "threadIdx.x");
        if (kind == "loop-kind") return Term(random_() % 2 ? "serial" : "par");
        if (kind == "function") return Term("relu");
        if (kind == "iterator") return Term(pick(statement_.axes, random_).name);
        return {};
    }

    // The loops that no variable has taken, without those that are to be before the list.
    Term rest() {
        Term sched("done");
        for (std::size_t i = digits_.size(); i-- > next_;) sched = Term("at", {digits_[i], sched});
        next_ = digits_.size();
        return sched;
    }

    Random& random_;
    Statement statement_;
    Term pattern_, last_axis_;
    std::vector<Term> digits_;
    std::map<Symbol, Term> bound_;
    std::set<Symbol> axes_;  // the variables that represent axes
    std::size_t axis_variables_ = 0, prefix_ = 0, next_ = 0;
};

}  // namespace

std::optional<NestInstance> draw_instance(const Term& pattern, const char* statement, std::mt19937_64& random) {
    Drawing drawing(pattern, statement, random);
    auto nest = drawing.draw();
    if (!nest) return {};
    return NestInstance{*nest, drawing.roles()};
}

}  // namespace loopegg
