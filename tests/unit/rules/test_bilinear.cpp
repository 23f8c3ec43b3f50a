// Bilinear algorithms of rule files: right ones are read, and a wrong entry is refused where it stands.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <gmpxx.h>

#include <array>
#include <set>

#include "base/places.hpp"
#include "rules/judge/bilinear_identity.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

using Matrices = std::array<std::vector<std::vector<std::string>>, 3>;  // the entries of :output, :weights and :input

Matrices entries_of(const BilinearForm& form) {
    Matrices all;
    const RationalMatrix* matrices[] = {&form.output, &form.weights, &form.input};
    for (std::size_t m = 0; m < 3; ++m)
        for (const auto& row : matrices[m]->entries) {
            all[m].emplace_back();
            for (const Rational& r : row) all[m].back().push_back(to_string(r));
        }
    return all;
}

struct Place {
    int line, column;
    friend bool operator==(const Place&, const Place&) = default;
};

// The algorithm as a file has it, one row of a matrix in a line, and the place of one entry.
struct Written {
    std::string text = "(language nest)\n(bilinear it :computes correlation";
    Place place{};
};
Written written(const Matrices& matrices, std::size_t matrix = 3, std::size_t row = 0, std::size_t column = 0) {
    Written w;
    int line = 2;
    const char* names[] = {":output", ":weights", ":input"};
    for (std::size_t m = 0; m < 3; ++m) {
        w.text += std::string(" ") + names[m] + " (", ++line;
        for (std::size_t r = 0; r < matrices[m].size(); ++r) {
            w.text += "\n(";
            int at = 2;
            for (std::size_t c = 0; c < matrices[m][r].size(); ++c) {
                if (m == matrix && r == row && c == column) w.place = {line, at};
                w.text += matrices[m][r][c] + " ", at += static_cast<int>(matrices[m][r][c].size()) + 1;
            }
            w.text += ")", ++line;
        }
        w.text += ")", --line;
    }
    w.text += ")\n";
    return w;
}

Loaded load(const std::string& text) { return check_rules(make_source("mine.rules", text)); }

mpq_class number(const std::string& entry) {
    mpq_class value(entry);
    value.canonicalize();
    return value;
}

// Entries other than this one.
std::set<std::string> others(const std::string& entry) {
    const mpq_class value = number(entry);
    std::set<std::string> all;
    for (const mpq_class& other : {mpq_class(value + 1), mpq_class(value - 1), mpq_class(-value), mpq_class(2 * value), mpq_class(value / 2), mpq_class(0),
                                   mpq_class(value + mpq_class(1, 24))})
        if (other != value) all.insert(other.get_str());
    return all;
}

// Cook and Toom's construction at these points and at infinity: the law by which right algorithms are made.
Matrices evaluated(const std::vector<mpq_class>& points, std::size_t taps) {
    const std::size_t products = points.size() + 1, outputs = products - taps + 1;
    Matrices all;
    all[0].assign(outputs, {});
    for (std::size_t u = 0; u < products; ++u) {
        const bool infinity = u == points.size();
        std::vector<mpq_class> vanishing{1};
        mpq_class at = 1;
        for (std::size_t l = 0; l < points.size(); ++l) {
            if (l == u) continue;
            vanishing.emplace_back(0);
            for (std::size_t i = vanishing.size(); i-- > 0;) vanishing[i] = (i > 0 ? vanishing[i - 1] : mpq_class(0)) - points[l] * vanishing[i];
            if (!infinity) at *= points[u] - points[l];
        }
        vanishing.resize(products);
        auto& input = all[2].emplace_back();
        for (const mpq_class& v : vanishing) input.push_back(v.get_str());
        mpq_class power = 1;
        for (std::size_t i = 0; i < outputs; ++i, power *= infinity ? mpq_class(1) : points[u])
            all[0][i].push_back(infinity ? (i + 1 == outputs ? "1" : "0") : power.get_str());
        auto& weights = all[1].emplace_back();
        power = 1 / at;
        for (std::size_t k = 0; k < taps; ++k, power *= infinity ? mpq_class(1) : points[u])
            weights.push_back(infinity ? (k + 1 == taps ? "1" : "0") : power.get_str());
    }
    return all;
}

}  // namespace

TEST_CASE("an algorithm with one changed entry is refused at that entry, whichever it is", "[unit]") {
    const Loaded shipped_rules = check_rules(shipped("rules/algorithms.rules"), {.judge = false});
    REQUIRE(shipped_rules.algorithms.size() >= 3);
    int changed = 0;
    for (const NamedAlgorithm& algorithm : shipped_rules.algorithms) {
        const Matrices right = entries_of(algorithm.form);
        REQUIRE(load(written(right).text).mistakes.empty());
        for (std::size_t m = 0; m < 3; ++m)
            for (std::size_t r = 0; r < right[m].size(); ++r)
                for (std::size_t c = 0; c < right[m][r].size(); ++c)
                    for (const std::string& other : others(right[m][r][c])) {
                        Matrices wrong = right;
                        wrong[m][r][c] = other;
                        const Written w = written(wrong, m, r, c);
                        const Loaded loaded = load(w.text);
                        CAPTURE(w.text);
                        REQUIRE_FALSE(loaded.mistakes.empty());
                        CHECK(loaded.algorithms.empty());
                        ++changed;
                        const Diagnostic& what = loaded.mistakes[0].what;
                        if (what.message.find("nothing uses product") != std::string::npos) continue;
                        // Now and then another entry could be changed instead. Then the message names both.
                        CHECK(what.message.find("coefficient of tap") != std::string::npos);
                        const std::string also = "with " + right[m][r][c] + " at " + std::to_string(w.place.line) + ":" + std::to_string(w.place.column);
                        const bool here =
                            Place{what.where.line(), what.where.column()} == w.place && what.hint.starts_with("it is right with " + right[m][r][c] + " here");
                        CHECK((here || what.hint.find(also) != std::string::npos));
                    }
    }
    CHECK(changed > 500);
}

TEST_CASE("algorithms that evaluate polynomials at any points are read", "[unit]") {
    rc::check([] {
        const auto drawn = *rc::gen::unique<std::vector<int>>(*rc::gen::inRange<std::size_t>(1, 6), rc::gen::inRange(-6, 7));
        std::vector<mpq_class> points;
        for (const int p : drawn) points.push_back(mpq_class(p, 2)), points.back().canonicalize();
        const auto taps = *rc::gen::inRange<std::size_t>(1, points.size() + 2);
        const Loaded loaded = load(written(evaluated(points, taps)).text);
        RC_ASSERT(loaded.mistakes.empty());
        RC_ASSERT(loaded.algorithms.at(0).form.taps() == static_cast<std::int64_t>(taps));
        RC_ASSERT(bilinear_form(to_term(loaded.algorithms[0].form)).has_value());  // a leaf says all that the file says
        RC_ASSERT(entries_of(*bilinear_form(to_term(loaded.algorithms[0].form))) == entries_of(loaded.algorithms[0].form));
    });
}

TEST_CASE("a rule with other nests than those of its algorithms is not proved", "[unit]") {
    const std::string algorithms = "(include \"" + shipped("rules/algorithms.rules").string() + "\")";
    const auto rule = [&](const std::string& how, const std::string& input) {
        return "(language nest)\n" + algorithms + "\n(rule mine (site ?n) => (prepare (bilinear " + how +
               ") (then (then (site ?i) ?p) ?o)) :for ?d (direct-1) :for ?f (winograd-2-3) :for ?i (bilinear-input ?n " + input +
               ") :for ?p (bilinear-products ?n ?f ?d) :for ?o (bilinear-output ?n ?f ?d) :when (allow-reassociation))";
    };
    CHECK(load(rule("?f ?d", "?f ?d")).mistakes.empty());
    for (const auto& [how, input] : {std::pair("?d ?f", "?f ?d"), {"?f ?d", "?d ?f"}, {"?f ?f", "?f ?d"}}) {
        const Loaded loaded = load(rule(how, input));
        REQUIRE(loaded.mistakes.size() == 1);
        CHECK(loaded.mistakes[0].what.message.find("not those of one convolution and one pair") != std::string::npos);
    }
}
