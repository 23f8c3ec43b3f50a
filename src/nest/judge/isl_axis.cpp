#include "nest/judge/isl_axis.hpp"

#include "nest/judge/isl_judge.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {

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

}  // namespace loopegg
