// Convolutions as rows of nests by the shipped bilinear algorithms: the same numbers, in bounds in float32, and only where the algorithms apply.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/bilinear_nests.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/value.hpp"
#include "rules/load.hpp"

using namespace loopegg;

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
