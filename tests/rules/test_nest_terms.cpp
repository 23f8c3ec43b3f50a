// Random terms from saturated e-graphs: the analysis, isl and the interpreter agree on every one.
//
// LOOPEGG_DEEP=1 tries 100,000 of them and interprets 10,000, and 20,000 strict ones. LOOPEGG_SHARE=n tries an n-th of that, so that n
// processes with different LOOPEGG_SEED do it together.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "base/sexpr.hpp"
#include "nest/term/statement.hpp"
#include "random_terms.hpp"
#include "rules/load.hpp"
#include "shrink.hpp"

using namespace loopegg;

namespace {

std::size_t number(const char* variable, std::size_t otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::size_t terms(std::size_t few, std::size_t full) { return std::getenv("LOOPEGG_DEEP") ? full / number("LOOPEGG_SHARE", 1) : few; }

void check_terms(const char* name, const RuleSelection& selection, std::size_t count, std::size_t runs, Check check) {
    check.strict_fp = selection.strict_fp;
    std::size_t over = sampled_statements().size(), judged = 0, ran = 0, unstaged = 0;
    std::set<std::string> applied;
    for (std::size_t at = 0; at < over; ++at) {
        // The remainder goes to the first statements, so that the sums are what was asked for.
        std::size_t here = count / over + (at < count % over), run_here = runs / over + (at < runs % over);
        if (here == 0) continue;
        TermSource source(sampled_statements()[at], selection);
        applied.insert(source.applied().begin(), source.applied().end());
        std::mt19937_64 random(number("LOOPEGG_SEED", 17));
        for (std::size_t i = 0; i < here; ++i) {
            Term term = source.sample(random);
            check.run = i < run_here;
            bool done = false;
            std::string why = wrong(term, check, &done);
            ++judged;
            ran += done, unstaged += check.run && !done;
            if (why.empty()) continue;
            check.run = true;
            Term small = shrink_nest(term, [&](const Term& t) { return wrong(t, check); });
            FAIL(why << ": " << to_string(bare(small)) << "\nfound as " << to_string(bare(term)));
        }
    }
    std::printf("terms of %s: %zu judged, %zu interpreted, %zu with a tile that cannot be staged, %zu rules applied\n", name, judged, ran, unstaged,
                applied.size());
    CHECK(unstaged * 20 <= runs);
    if (selection.strict_fp) return;  // it keeps some rules from applying
    for (const RuleBook& book : selection.books)
        for (const Rule* r : book.rules()) CHECK((applied.contains(r->name) || !selection.takes(*r)));
}

// What schedules may hold and no shipped rule makes: layouts, partial sums, any two loops as one.
constexpr const char* other_forms = R"((language nest)
(ruleset layouts
  (rule pack-weights          (nest ?n ?s)         => (nest (layout W co ?k ?n) ?s)  :for ?k (8 16) :when (unpacked ?n W) (blocks ?n W co ?k))
  (rule pack-inputs           (nest ?n ?s)         => (nest (layout I ci ?k ?n) ?s)  :for ?k (8 16) :when (unpacked ?n I) (blocks ?n I ci ?k))
  (rule pack-outputs          (nest ?n ?s)         => (nest (layout O co ?k ?n) ?s)  :for ?k (8 16) :when (unpacked ?n O) (blocks ?n O co ?k)))
(ruleset reductions
  (rule split-reduction       (at ?a ?s)           => (partial serial ?a ?s)         :when (reassociable ?a) (<= (extent ?a) 16) (<= (output-tile ?s) 64))
  (rule parallelize-reduction (nest ?n (at ?a ?s)) => (nest ?n (partial par ?a ?s))  :when (reassociable ?a) (<= (extent ?a) 16)))
(ruleset fusion
  (rule fuse-any-loops        (at ?a (at ?b ?s))   => (at (pair ?a ?b) ?s)           :when (digit ?a) (digit ?b) (apart ?a ?b)))
)";

// Splits and fuses what is split and fused already, which the shipped rules leave alone; the rules over axes then see through it.
constexpr const char* deeper_axes = R"((language nest)
(rule join-split     (pair (quo ?a ?k) (rem ?a ?k)) => ?a)
(rule outer-of-pair  (quo (pair ?a ?b) ?k) => ?a            :when (= ?k (extent ?b)))
(rule inner-of-pair  (rem (pair ?a ?b) ?k) => ?b            :when (= ?k (extent ?b)))
(rule quo-of-quo     (quo (quo ?a ?j) ?k)  => (quo ?a (* ?j ?k)) :when (digit ?a))
(rule rem-of-rem     (rem (rem ?a ?j) ?k)  => (rem ?a ?k)   :when (divides ?k ?j) (digit ?a))
(rule fuse-any-loops (at ?a (at ?b ?s))    => (at (pair ?a ?b) ?s) :when (digit ?a) (digit ?b) (apart ?a ?b))
(rule unfuse-loops   (at (pair ?a ?b) ?s)  => (at ?a (at ?b ?s)))
(rule split-again  (at ?a ?s) => (at (quo ?a ?k) (at (rem ?a ?k) ?s)) :for ?k (divisors ?a) :when (shallow ?a 1))
(rule fuse-halves  (at (quo ?a ?k) (at (rem ?a ?k) ?s)) => (at (pair (quo ?a ?k) (rem ?a ?k)) ?s))
)";

}  // namespace

TEST_CASE("every statement is sampled", "[rules]") {
    for (const StatementForm& form : statement_forms())
        CHECK(std::any_of(sampled_statements().begin(), sampled_statements().end(),
                          [&](const char* s) { return std::string(s).find("(" + form.op + " ") != std::string::npos; }));
}

TEST_CASE("random schedules for processors: analysis, isl and interpreter agree", "[rules]") {
    check_terms("tune-cpu",
                {.books = {shipped_rules("structure.rules"), shipped_rules("tune-cpu.rules"), check_rules(make_source("other forms", other_forms)).book},
                 .sets = {"structure", "fusion", "tiling", "cpu", "layouts", "reductions"}},
                terms(460, 40000), terms(138, 4000), {});
}

TEST_CASE("schedules that arrange a nest as a whole: analysis, isl and interpreter agree", "[rules]") {
    for (const bool strict : {false, true})
        check_terms(strict ? "strict schedule" : "schedule",
                    {.books = {shipped_rules("tune-cpu.rules")}, .sets = {"registers", "sweeps", "vectors", "one-core"}, .strict_fp = strict, .iterations = 2},
                    terms(230, 20000), terms(69, 2000), {});
}

TEST_CASE("random schedules for graphics processors: analysis, isl and interpreter agree", "[rules]") {
    // Rules that round have tests of their own, with a target that allows it. A second iteration goes on from what the first one cut into blocks.
    check_terms("tune-gpu", {.books = {shipped_rules("tune-gpu.rules")}, .sets = {"gpu-blocks", "gpu-loops"}, .iterations = 2, .nodes = 3000},
                terms(230, 25000), terms(69, 2500), {});
}

TEST_CASE("random axes: analysis, isl and interpreter agree", "[rules]") {
    check_terms(
        "axes",
        {.books = {shipped_rules("structure.rules"), check_rules(make_source("deeper axes", deeper_axes)).book}, .levels = 3, .iterations = 3, .nodes = 4000},
        terms(230, 15000), terms(69, 1500), {});
}

TEST_CASE("random variants: analysis, isl and interpreter agree on what is left", "[rules]") {
    check_terms("discover", {.books = {shipped_rules("discover.rules")}, .sets = {"structure", "neural", "neural-restored", "neural-parts"}, .iterations = 5},
                terms(230, 20000), terms(69, 2000), {.whole = false});
}

TEST_CASE("strict schedules are bit-identical to the naive order on random floats", "[rules]") {
    check_terms("strict-fp",
                {.books = {shipped_rules("structure.rules"), shipped_rules("tune-cpu.rules"), check_rules(make_source("other forms", other_forms)).book},
                 .sets = {"structure", "fusion", "tiling", "cpu", "layouts", "reductions"},
                 .strict_fp = true},
                terms(230, 20000), terms(230, 20000), {});
}

TEST_CASE("a counterexample shrinks to the few loops that show it", "[rules]") {
    Check check;
    auto shrunk = [&](const char* text) { return to_string(bare(shrink_nest(complete(parse_term(text)), [&](const Term& t) { return wrong(t, check); }))); };
    // A loop over a sum that runs its iterations at once, deep in a schedule that is otherwise sound.
    CHECK(shrunk("(nest (epilogue relu (epilogue bias (conv2d 2 1 8 8 5 5 2 2 1 1 1 1 1 1))) "
                 "(par (pair n (quo co 3)) (at (quo ci 2) (stage O (at oh (at (rem co 3) (at ow (at kh (vec kw (at (rem ci 2) done))))))))))") ==
          "(nest (conv2d 1 1 1 1 1 2 1 2 1 1 0 0 1 1) (vec kw done))");
    // Another extent: the second half of a cut begins too late.
    CHECK(
        shrunk(
            "(nest (matmul 2 4 6 8) (cat (at (span j 0 3) (par i (at b (at k done)))) (at (span j 4 6) (at i (at b (at (quo k 4) (at (rem k 4) done)))))))") ==
        "(nest (matmul 1 1 2 1) (at (span j 0 1) done))");
    // An interchange over a carried dependence.
    CHECK(shrunk("(nest (recurrence 4 6) (at (quo y 2) (at t (at (rem y 2) done))))") == "(nest (recurrence 2 2) (at y (at t done)))");
}
