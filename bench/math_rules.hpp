// The math microbenchmark of egg and egglog: 24 rules of arithmetic and calculus, 7 terms, and the sizes that every engine must agree on.
#pragma once
#include <array>
#include <utility>
#include <vector>

#include "base/sexpr.hpp"
#include "egraph/egraph.hpp"
#include "egraph/rewrite.hpp"

namespace loopegg {

inline std::vector<Rewrite> math_rules() {
    return {
        rewrite("add-commutes", "(+ ?a ?b)", "(+ ?b ?a)"),
        rewrite("mul-commutes", "(* ?a ?b)", "(* ?b ?a)"),
        rewrite("add-associates", "(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"),
        rewrite("mul-associates", "(* ?a (* ?b ?c))", "(* (* ?a ?b) ?c)"),
        rewrite("sub-as-add", "(- ?a ?b)", "(+ ?a (* -1 ?b))"),
        rewrite("add-zero", "(+ ?a 0)", "?a"),
        rewrite("mul-zero", "(* ?a 0)", "0"),
        rewrite("mul-one", "(* ?a 1)", "?a"),
        rewrite("cancel-sub", "(- ?a ?a)", "0"),
        rewrite("distribute", "(* ?a (+ ?b ?c))", "(+ (* ?a ?b) (* ?a ?c))"),
        rewrite("factor", "(+ (* ?a ?b) (* ?a ?c))", "(* ?a (+ ?b ?c))"),
        rewrite("pow-mul", "(* (pow ?a ?b) (pow ?a ?c))", "(pow ?a (+ ?b ?c))"),
        rewrite("pow-one", "(pow ?x 1)", "?x"),
        rewrite("pow-two", "(pow ?x 2)", "(* ?x ?x)"),
        rewrite("d-add", "(d ?x (+ ?a ?b))", "(+ (d ?x ?a) (d ?x ?b))"),
        rewrite("d-mul", "(d ?x (* ?a ?b))", "(+ (* ?a (d ?x ?b)) (* ?b (d ?x ?a)))"),
        rewrite("d-sin", "(d ?x (sin ?x))", "(cos ?x)"),
        rewrite("d-cos", "(d ?x (cos ?x))", "(* -1 (sin ?x))"),
        rewrite("i-one", "(i 1 ?x)", "?x"),
        rewrite("i-cos", "(i (cos ?x) ?x)", "(sin ?x)"),
        rewrite("i-sin", "(i (sin ?x) ?x)", "(* -1 (cos ?x))"),
        rewrite("i-sum", "(i (+ ?f ?g) ?x)", "(+ (i ?f ?x) (i ?g ?x))"),
        rewrite("i-dif", "(i (- ?f ?g) ?x)", "(- (i ?f ?x) (i ?g ?x))"),
        rewrite("i-parts", "(i (* ?a ?b) ?x)", "(- (* ?a (i ?b ?x)) (i (* (d ?x ?a) (i ?b ?x)) ?x))"),
    };
}

inline std::vector<Term> math_terms() {
    std::vector<Term> out;
    for (const char* t : {"(i (ln x) x)", "(i (+ x (cos x)) x)", "(i (* (cos x) x) x)", "(d x (+ 1 (* 2 x)))", "(d x (- (pow x 3) (* 7 (pow x 2))))",
                          "(+ (* y (+ x y)) (- (+ x 2) (+ x x)))", "(/ 1 (- (/ (+ 1 (sqrt five)) 2) (/ (- 1 (sqrt five)) 2)))"})
        out.push_back(parse_term(t));
    return out;
}

// Nodes and classes after each iteration.
inline constexpr std::array<std::pair<std::size_t, std::size_t>, 11> math_counts{
    {{69, 50}, {118, 71}, {208, 116}, {389, 197}, {784, 361}, {1576, 666}, {3160, 1347}, {8113, 3576}, {28303, 12445}, {136446, 58464}, {1047896, 443832}}};

}  // namespace loopegg
