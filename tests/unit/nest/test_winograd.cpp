// Winograd's forms: exact over the rationals, in bounds in float32, and only where they apply.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/winograd_nests.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/value.hpp"
#include "nest/term/winograd.hpp"

using namespace loopegg;

namespace {

Term row_of(const Term& nest, int outputs, int taps) {
    const auto nests = winograd_nests(nest, outputs, taps);
    REQUIRE(nests.has_value());
    return Term("prepare",
                {Term("winograd", {Term(outputs), Term(taps)}), Term("then", {Term("then", {Term("site", {nests->input}), nests->products}), nests->output})});
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
// bench_winograd_error's figures are. `wide`: a few inputs are thousands of times as large as the others.
double bound(int outputs, bool wide) { return outputs == 2 ? (wide ? 40 : 12) : (wide ? 350 : 80); }

}  // namespace

TEST_CASE("a form filters whole numbers exactly", "[unit]") {
    for (const auto& [outputs, taps] : {std::pair(2, 3), {4, 3}, {6, 3}, {2, 5}, {4, 5}, {3, 2}}) {
        const WinogradForm& form = winograd_form(outputs, taps);
        CAPTURE(outputs, taps);
        rc::check([&, &outputs = outputs, &taps = taps] {
            const auto p = static_cast<std::size_t>(form.products());
            const auto d = *rc::gen::container<std::vector<int>>(p, rc::gen::inRange(-9, 10)),
                       g = *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(taps), rc::gen::inRange(-9, 10));
            for (std::size_t i = 0; i < static_cast<std::size_t>(outputs); ++i) {
                double got = 0, wanted = 0;
                for (std::size_t k = 0; k < g.size(); ++k) wanted += d[i + k] * g[k];
                for (std::size_t j = 0; j < p; ++j) {
                    double in = 0, w = 0;
                    for (std::size_t k = 0; k < p; ++k) in += form.input[j][k] * d[k];
                    for (std::size_t k = 0; k < g.size(); ++k) w += std::round(form.weights[j][k] * form.denominator) * g[k];  // whole numbers
                    got += form.output[i][j] * in * w;
                }
                RC_ASSERT(got == wanted * form.denominator);
            }
        });
    }
    CHECK_THROWS_AS(winograd_form(8, 3), UserError);
    CHECK_THROWS_AS(winograd_form(1, 3), UserError);
}

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
            const double whole = std::pow(winograd_form(outputs, 3).denominator, 2);
            const Term row = row_of(site[0], outputs, 3);
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
            const std::vector<float> got = interpret_value(row_of(conv, outputs, 3), operands);
            double worst = 0;
            for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::fabs(got[i] - exact[i]) / scale * (1 << 24));
            CAPTURE(layer, outputs);
            CHECK(worst <= bound(outputs, layer % 5 == 4));
        }
    }
}

TEST_CASE("what is no convolution of stride 1 over whole rows and columns has no row", "[unit]") {
    CHECK_FALSE(winograd_nests(nest("(nest (conv2d 1 1 4 4 8 8 3 3 2 2 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"), 2, 3));
    CHECK_FALSE(winograd_nests(nest("(nest (conv2d 1 1 4 4 8 8 1 1 1 1 0 0 1 1) (at co (at ci (at oh (at ow done)))))"), 2, 3));
    CHECK_FALSE(winograd_nests(nest("(nest (conv2d 1 1 4 4 8 8 3 3 1 1 2 2 2 2) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"), 2, 3));
    CHECK_FALSE(winograd_nests(nest("(nest (conv2d 1 1 4 4 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at (span kh 0 2) (at kw done)))))))"), 2, 3));
    CHECK_FALSE(winograd_nests(nest("(nest (conv2d 1 1 4 3 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"), 2, 3));
    CHECK_FALSE(winograd_nests(nest("(nest (linear 4 4 4) (at n (at co (at ci done))))"), 2, 3));
}
