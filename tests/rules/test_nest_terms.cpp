// Random terms from saturated e-graphs: the analysis, isl and the interpreter agree on every one.
//
// LOOPEGG_DEEP=1 tries 100,000 of them and interprets 10,000, and 20,000 strict ones. LOOPEGG_SHARE=n tries an n-th of that, so that n
// processes with different LOOPEGG_SEED do it together.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "base/term.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/statement.hpp"
#include "nest/term/wrapped_statement.hpp"
#include "random_terms.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

// Makes a nest that shows a fault as small as it can be while it still shows that fault: fewer loops, smaller extents, plainer loops.

// What is wrong with a nest, "" for nothing. The function may throw UserError for a term that is no nest, which counts as nothing wrong.
using Complaint = std::function<std::string(const Term& nest)>;

// Smaller is better: the parts of the term, loops of a special kind, the sum of all numbers.
struct Size {
    std::int64_t parts = 0, special = 0, numbers = 0;
    auto as_tuple() const { return std::tuple(parts, special, numbers); }
};

void measure(const Term& t, Size& size) {
    ++size.parts;
    const std::string& op = t.op().text();
    if (is_loop_operator(op) && op != "at") ++size.special;
    if (t.size() == 0) {
        if (auto value = t.integer())
            size.numbers += std::abs(*value);
        else if (auto name = axis_name(t); name && name->extent > 0)
            size.numbers += name->extent;
    }
    for (const Term& child : t.children()) measure(child, size);
}

bool smaller(const Term& a, const Term& b) {
    Size x, y;
    measure(a, x), measure(b, y);
    return x.as_tuple() < y.as_tuple();
}

Term with_child(const Term& t, std::size_t i, Term child) {
    std::vector<Term> children(t.children().begin(), t.children().end());
    children[i] = std::move(child);
    return Term(t.op(), std::move(children));
}

Term loop(const Term& axis, const Term& rest) { return Term("at", {axis, rest}); }

// An axis over iterators of other extents; none when nothing of it is left to walk.
Term resized_axis(const Term& axis, const Statement& s) {
    if (axis.size() == 0) {
        auto name = axis_name(axis);
        if (axis.integer() || !name) return axis;
        int at = s.axis(name->name);
        if (at < 0) return {};
        std::int64_t extent = s.axes[static_cast<std::size_t>(at)].extent;
        return extent > 1 ? axis_leaf(name->name, extent) : Term();
    }
    if (axis.is("diag", 3)) {
        Term a = resized_axis(axis[1], s), b = resized_axis(axis[2], s);
        return a && b ? Term("diag", {axis[0], a, b}) : Term();
    }
    if (axis.is("pair", 2)) {
        Term a = resized_axis(axis[0], s), b = resized_axis(axis[1], s);
        return !a ? b : !b ? a : Term("pair", {a, b});
    }
    Term inner = resized_axis(axis[0], s);
    if (!inner) return {};
    if (!axis.is("span", 3)) return with_child(axis, 0, inner);
    std::int64_t lo = *axis[1].integer(), hi = std::min(*axis[2].integer(), axis_extent(inner));
    return Term("span", {inner, Term(std::min(lo, hi - 1)), Term(hi)});
}

Term resized(const Term& sched, const Statement& s) {
    if (sched.size() == 0) return sched;
    if (sched.is("cat", 2)) return Term("cat", {resized(sched[0], s), resized(sched[1], s)});
    Term rest = resized(sched[sched.size() - 1], s);
    if (!is_loop_operator(sched.op().text())) return with_child(sched, sched.size() - 1, rest);
    Term axis = resized_axis(loop_axis(sched), s);
    return axis ? with_child(with_child(sched, sched.size() - 1, rest), sched.size() - 2, axis) : rest;
}

// A term with one of its numbers made smaller.
std::vector<Term> smaller_numbers(const Term& t) {
    std::vector<Term> all;
    if (auto value = t.integer(); value && t.size() == 0)
        for (std::int64_t less : std::array<std::int64_t, 5>{0, 1, 2, *value / 2, *value - 1})
            if (less < *value) all.emplace_back(less);
    for (std::size_t i = 0; i < t.size(); ++i)
        for (Term& child : smaller_numbers(t[i])) all.push_back(with_child(t, i, std::move(child)));
    return all;
}

// Statements with one number made smaller, or without their outermost epilogue or layout.
std::vector<Term> smaller_statements(const Term& stmt) {
    if (!is_wrapper(stmt)) return smaller_numbers(stmt);
    std::size_t last = stmt.size() - 1;
    std::vector<Term> all{stmt[last]};
    for (const Term& inner : smaller_statements(stmt[last])) all.push_back(with_child(stmt, last, inner));
    return all;
}

// Statements with two numbers changed at once: an image that needs no padding may be larger than one that does.
std::vector<Term> traded_statements(const Term& stmt) {
    std::vector<Term> all;
    for (std::size_t i = 0; i < stmt.size(); ++i)
        for (std::size_t j = i + 1; j < stmt.size(); ++j)
            for (std::int64_t a : {0, 1, 2})
                for (std::int64_t b : {0, 1, 2})
                    if (stmt[i].integer() && stmt[j].integer()) all.push_back(with_child(with_child(stmt, i, Term(a)), j, Term(b)));
    return all;
}

bool walks(const Term& axis, const Term& leaf) {
    auto leaves = iterators_of(axis);
    return leaves.size() == 1 && leaves[0] == leaf;
}

// All loops over digits of one iterator as one loop, at the place of the first.
Term whole_loop(const Term& sched, const Term& leaf, bool seen = false) {
    if (sched.size() == 0) return sched;
    if (sched.is("cat", 2)) return Term("cat", {whole_loop(sched[0], leaf, seen), whole_loop(sched[1], leaf, seen)});
    bool here = is_loop_operator(sched.op().text()) && walks(loop_axis(sched), leaf);
    Term rest = whole_loop(sched[sched.size() - 1], leaf, seen || here);
    if (!here) return with_child(sched, sched.size() - 1, rest);
    return seen ? rest : with_child(with_child(sched, sched.size() - 1, rest), sched.size() - 2, leaf);
}

// Every schedule that is one step plainer.
std::vector<Term> plainer(const Term& sched) {
    std::vector<Term> all;
    if (sched.size() == 0) return all;
    const std::string& op = sched.op().text();
    if (sched.is("cat", 2)) {
        all.push_back(sched[0]), all.push_back(sched[1]);
        for (std::size_t part : {0u, 1u})
            if (is_loop_operator(sched[part].op().text()) && loop_axis(sched[part]).is("span", 3))
                all.push_back(with_child(sched[part], sched[part].size() - 2, loop_axis(sched[part])[0]));
        for (std::size_t part : {0u, 1u})
            for (const Term& less : plainer(sched[part])) all.push_back(with_child(sched, part, less));
        return all;
    }
    std::size_t last = sched.size() - 1;
    all.push_back(sched[last]);
    if (is_loop_operator(op)) {
        const Term& axis = loop_axis(sched);
        if (op != "at") all.push_back(loop(axis, sched[last]));
        if (axis.is("pair", 2)) all.push_back(loop(axis[0], loop(axis[1], sched[last])));
        if (axis.size() > 0 && axis[0].size() + axis[axis.size() - 1].size() > 0)
            for (const Term& child : axis.children())
                if (!child.integer()) all.push_back(with_child(sched, last - 1, child));
        for (const Term& leaf : iterators_of(axis)) all.push_back(with_child(sched, last - 1, leaf));
        for (const Term& less : smaller_numbers(axis)) all.push_back(with_child(sched, last - 1, less));
    }
    for (const Term& less : plainer(sched[last])) all.push_back(with_child(sched, last, less));
    return all;
}

void add_resized(const Term& nest, const std::vector<Term>& statements, std::vector<Term>& all) {
    for (const Term& stmt : statements) {
        try {
            all.push_back(Term("nest", {stmt, resized(nest[1], statement_of(stmt))}));
        } catch (const UserError&) {  // a window larger than its image
        }
    }
}

// `far`: the many that are worth a try when no near one does.
std::vector<Term> candidates(const Term& nest, bool far) {
    if (nest.is("restore", 2)) {
        std::vector<Term> all{nest[1]};
        for (const Term& inner : candidates(nest[1], far)) all.push_back(with_child(nest, 1, inner));
        return all;
    }
    std::vector<Term> all;
    if (far) {
        add_resized(nest, traded_statements(nest[0]), all);
        return all;
    }
    add_resized(nest, smaller_statements(nest[0]), all);
    for (const Iterator& it : statement_of(nest[0]).axes)
        if (it.extent > 1) all.push_back(with_child(nest, 1, whole_loop(nest[1], axis_leaf(it.name, it.extent))));
    for (const Term& sched : plainer(nest[1])) all.push_back(with_child(nest, 1, sched));
    return all;
}

// The smallest nest found that gets the same complaint as `nest` does.
Term shrink_nest(const Term& nest, const Complaint& complaint) {
    auto asked = [&](const Term& t) -> std::string {
        try {
            return complaint(t);
        } catch (const UserError&) {
            return "";
        }
    };
    const std::string words = asked(nest);
    Term best = nest;
    auto improved = [&](bool far) {
        std::vector<Term> all = candidates(best, far);
        std::sort(all.begin(), all.end(), smaller);
        auto found = std::find_if(all.begin(), all.end(), [&](const Term& t) { return smaller(t, best) && asked(t) == words; });
        if (found != all.end()) best = *found;
        return found != all.end();
    };
    while (!words.empty() && (improved(false) || improved(true))) {
    }
    return best;
}

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
