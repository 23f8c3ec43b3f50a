// Bilinear algorithms: their matrices are proved, and their nests compute the convolution.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <gmpxx.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/bilinear_nests.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/value.hpp"
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

namespace {

const BilinearForm& shipped_form(const std::string& name) {
    static const Loaded rules = check_rules(shipped("rules/algorithms.rules"), {.judge = false});
    const BilinearForm* form = rules.find_algorithm(name);
    REQUIRE(form != nullptr);
    return *form;
}

// An algorithm of three taps by its number of outputs; of one tap where there is one output.
const BilinearForm& form_of(int outputs) { return shipped_form(outputs == 1 ? "direct-1" : "winograd-" + std::to_string(outputs) + "-3"); }

std::optional<BilinearNests> nests_by(const Term& nest, int down, int along) { return bilinear_nests(nest, {form_of(down), form_of(along)}); }

Term row_of(const Term& nest, int down, int along) {
    const auto nests = nests_by(nest, down, along);
    REQUIRE(nests.has_value());
    return bilinear_row({form_of(down), form_of(along)}, *nests);
}

// The smallest number by which every entry of the weights' matrix becomes whole.
double denominator(const BilinearForm& form) {
    std::int64_t all = 1;
    for (const auto& row : form.weights.entries)
        for (const Rational& r : row) all = std::lcm(all, r.under);
    return static_cast<double>(all);
}

Operands numbers(const Term& value, std::uint64_t seed, double weights) {
    std::mt19937_64 random(seed);
    Operands all;
    for (const Buffer& b : operands_of(value)) {
        auto& values = all.emplace_back(static_cast<std::size_t>(element_count(b.shape)));
        for (float& v : values) v = static_cast<float>((b.name == "W" ? weights : 1) * static_cast<double>(static_cast<int>(random() % 3) - 1));
    }
    return all;
}

Term nest(const std::string& text) { return complete(parse_term(text)); }

// Of each form, in units of float32's rounding (2^-24) of the largest sum of absolute values: stated in experiments/winograd.md, where
// bench_bilinear_error's figures are. `wide`: a few inputs are thousands of times as large as the others.
double bound(int outputs, bool wide) { return outputs == 2 ? (wide ? 40 : 12) : (wide ? 350 : 80); }

}  // namespace

TEST_CASE("a convolution and its row of nests compute the same whole numbers", "[unit]") {
    for (const char* text :
         {"(nest (conv2d 2 1 4 4 5 6 3 3 1 1 1 1 1 1) (at n (at co (at ci (at oh (at ow (at kh (at kw done))))))))",
          "(nest (epilogue relu (epilogue add (epilogue bias (conv2d 1 1 8 4 7 7 3 3 1 1 1 1 1 1)))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
          "(nest (conv2d 1 2 4 8 4 4 3 3 1 1 0 0 1 1) (at g (at co (at ci (at oh (at ow (at kh (at kw done))))))))",
          "(nest (conv2d 1 1 8 8 4 4 3 3 1 1 1 1 1 1) (at (diag 4 co ci) (at (rem co 2) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))",
          "(nest (conv2d 1 1 4 8 4 4 3 3 1 1 1 1 1 1) (at co (at (span ci 0 4) (at oh (at ow (at kh (at kw done)))))))",
          "(restore zero (nest (conv2d 1 1 8 4 4 5 3 3 1 1 1 1 1 1) (at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done))))))))"}) {
        CAPTURE(text);
        const Term site("site", {nest(text)});
        for (const int outputs : {2, 4}) {
            const double whole = std::pow(denominator(form_of(outputs)), 2);
            const Term row = row_of(site[0], outputs, outputs);
            const Operands operands = numbers(site, 5, whole);
            CHECK(interpret_value(row, operands) == interpret_value(site, operands));
        }
    }
}

TEST_CASE("a row of nests errs within its form's bound", "[unit]") {
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal;
    for (int layer = 0; layer < 20; ++layer) {
        const Term conv = nest("(nest (conv2d 1 1 4 16 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))");
        const Term site("site", {conv});
        Operands operands = numbers(site, 1, 1), absolute;
        // Random, with a mean, adversarial (signs that make the transforms' sums as large as they can be), as in trained networks (few weights are large,
        // and half of the inputs are zeros that a ReLU left), and inputs of a wide range of sizes.
        for (std::size_t o = 0; o < operands.size(); ++o)
            for (std::size_t i = 0; i < operands[o].size(); ++i) {
                const float v = normal(random), sign = i % 2 ? -1.0f : 1.0f;
                const float trained = o == 0 ? v * v * v : std::max(v, 0.0f) * std::exp(v), wide = o == 0 ? v : v * std::exp(3 * normal(random));
                const float values[] = {v, v + 1, sign * (1 + 0.001f * v), trained, wide};
                operands[o][i] = values[layer % 5];
            }
        absolute = operands;
        for (auto& o : absolute)
            for (float& v : o) v = std::fabs(v);
        double scale = 0;
        for (float v : interpret_value(site, absolute)) scale = std::max(scale, static_cast<double>(v));
        std::vector<double> exact;
        for (std::int64_t o = 0; o < 4; ++o)
            for (std::int64_t y = 0; y < 8; ++y)
                for (std::int64_t x = 0; x < 8; ++x) {
                    double sum = 0;
                    for (std::int64_t c = 0; c < 16; ++c)
                        for (std::int64_t k = 0; k < 9; ++k)
                            if (const std::int64_t iy = y + k / 3 - 1, ix = x + k % 3 - 1; iy >= 0 && ix >= 0 && iy < 8 && ix < 8)
                                sum += static_cast<double>(operands[0][static_cast<std::size_t>((o * 16 + c) * 9 + k)]) *
                                       operands[1][static_cast<std::size_t>((c * 8 + iy) * 8 + ix)];
                    exact.push_back(sum);
                }
        for (const int outputs : {2, 4}) {
            const std::vector<float> got = interpret_value(row_of(conv, outputs, outputs), operands);
            double worst = 0;
            for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::fabs(got[i] - exact[i]) / scale * (1 << 24));
            CAPTURE(layer, outputs);
            CHECK(worst <= bound(outputs, layer % 5 == 4));
        }
    }
}

TEST_CASE("a kernel of one row or one column is transformed in one direction", "[unit]") {
    for (const char* text : {"(nest (conv2d 1 1 4 8 5 7 1 3 1 1 0 1 1 1) (at co (at ci (at oh (at ow (at kw done))))))",
                             "(nest (epilogue bias (conv2d 2 1 8 4 7 5 3 1 1 1 1 0 1 1)) (at n (at co (at ci (at oh (at ow (at kh done)))))))"}) {
        CAPTURE(text);
        const Term site("site", {nest(text)});
        const bool row = std::string(text).find(" 1 3 1 1 ") != std::string::npos;
        for (const int outputs : {2, 4}) {
            const Term value = row ? row_of(site[0], 1, outputs) : row_of(site[0], outputs, 1);
            const Operands operands = numbers(site, 5, denominator(form_of(outputs)));
            CHECK(interpret_value(value, operands) == interpret_value(site, operands));
        }
        CHECK_FALSE(nests_by(site[0], 2, 2));
    }
}

TEST_CASE("what is no convolution of stride 1 over whole rows and columns has no row", "[unit]") {
    CHECK_FALSE(nests_by(nest("(nest (conv2d 1 1 4 4 8 8 3 3 2 2 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"), 2, 2));
    CHECK_FALSE(nests_by(nest("(nest (conv2d 1 1 4 4 8 8 1 1 1 1 0 0 1 1) (at co (at ci (at oh (at ow done)))))"), 2, 2));
    CHECK_FALSE(nests_by(nest("(nest (conv2d 1 1 4 4 8 8 3 3 1 1 2 2 2 2) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"), 2, 2));
    CHECK_FALSE(nests_by(nest("(nest (conv2d 1 1 4 4 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at (span kh 0 2) (at kw done)))))))"), 2, 2));
    CHECK_FALSE(nests_by(nest("(nest (conv2d 1 1 4 3 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"), 2, 2));
    CHECK_FALSE(nests_by(nest("(nest (linear 4 4 4) (at n (at co (at ci done))))"), 2, 2));
}
