// A-priori bounds on rounding errors: what compiled kernels err on random and adversarial operands stays within them.
#include <algorithm>
#include <cmath>
#include <random>

#include <catch2/catch.hpp>

#include "backends/network/site_error.hpp"
#include "backends/target/target_rules.hpp"
#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/bilinear_nests.hpp"
#include "nest/term/int8_scales.hpp"
#include "nest/term/rounding.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

const Target& host() {
    static const Target target = find_target("host");
    return target;
}

double largest_error(const Term& direct, const Term& value) {
    KernelCache cache;
    const auto kernels = SiteKernels::of(direct, value, host(), cache);
    REQUIRE(kernels.has_value());
    return kernels->largest_error();
}

void check(const Term& direct, const Term& value) {
    CAPTURE(to_string(value));
    const auto bound = error_bound(value);
    REQUIRE(bound.has_value());
    const double error = largest_error(direct, value);
    CHECK(error <= bound->bound);
    CHECK(error > 0);
}

BilinearForm form_named(const std::string& name) {
    static const Loaded rules = check_rules(shipped("rules/algorithms.rules"), {.judge = false});
    const BilinearForm* form = rules.find_algorithm(name);
    REQUIRE(form != nullptr);
    return *form;
}

Term row_of(const Term& direct, const std::string& down, const std::string& along) {
    const BilinearPair pair{form_named(down), form_named(along)};
    auto nests = bilinear_nests(nest_of(statement_of(direct)), pair);
    REQUIRE(nests.has_value());
    for (Term* each : {&nests->input, &nests->products, &nests->output}) *each = schedule_rules(host())->schedules(*each, 1).front();
    return bilinear_row(pair, *nests);
}

double bound_of(const std::string& nest) { return error_bound(complete(parse_term(nest)))->bound; }

}  // namespace

TEST_CASE("kernels err less than the bound of their sums, with every schedule and precision", "[unit]") {
    for (const char* text :
         {"(conv2d 1 1 16 24 9 9 3 3 1 1 1 1 1 1)", "(conv2d 1 8 2 2 10 10 3 3 2 2 1 1 1 1)", "(conv2d 2 1 8 64 6 6 1 1 1 1 0 0 1 1)",
          "(epilogue relu (epilogue bias (conv2d 1 1 16 8 8 8 5 5 1 1 2 2 1 1)))", "(epilogue add (epilogue bias (linear 4 32 300)))", "(matmul 2 16 16 96)"}) {
        const Term statement = parse_term(text), direct = plain_statement(statement);
        const Term naive = nest_of(statement_of(statement));
        check(direct, naive);
        const std::vector<Term> schedules = schedule_rules(host())->schedules(naive, 6);
        for (std::size_t i = 0; i < schedules.size(); i += 3) check(direct, schedules[i]);
        for (const char* kind : {"bf16", "tf32"}) check(direct, with_rounded_operands(naive, kind));
        CHECK(largest_error(direct, with_rounded_operands(naive, "bf16")) > error_bound(naive)->bound);  // which is for float32
    }
}

TEST_CASE("bilinear algorithms err less than the bound of their matrices", "[unit]") {
    for (const char* text : {"(conv2d 1 1 16 16 8 8 3 3 1 1 1 1 1 1)", "(conv2d 1 1 8 64 9 6 3 3 1 1 1 1 1 1)"})
        for (const char* name : {"winograd-2-3", "winograd-4-3"}) check(parse_term(text), row_of(parse_term(text), name, name));
    check(parse_term("(conv2d 1 1 8 16 9 8 1 3 1 1 0 1 1 1)"), row_of(parse_term("(conv2d 1 1 8 16 9 8 1 3 1 1 0 1 1 1)"), "direct-1", "winograd-4-3"));
    const auto bound = error_bound(row_of(parse_term("(conv2d 1 1 16 16 8 8 3 3 1 1 1 1 1 1)"), "winograd-2-3", "winograd-2-3"));
    CHECK(bound->growth == 16);  // of |C| diag(|B| 1) |A| of F(2,3), the largest element is 4
    CHECK(bound->roundings == 2 + (2 * 2 + 3) + 16 + (3 * 3 + 3));
    CHECK(bound->terms == 16 * 9);
}

// Every addition rounds up by half a unit in the last place, so that no smaller bound of this form holds.
TEST_CASE("a sum whose roundings do not cancel comes close to its bound", "[unit]") {
    const int n = 4096;
    std::vector<float> x;
    float sum = 0;
    for (int i = 0; i < n; ++i) {
        const float last = std::nextafter(sum + 0.75f, INFINITY) - (sum + 0.75f);
        x.push_back(sum < 2 ? 0.75f : std::floor(0.75f / last) * last + last / 2 + 0x1p-23f);
        sum += x.back();
    }
    const Term direct = parse_term("(linear 1 1 4096)"), nest = complete(parse_term("(nest (linear 1 1 4096) (at ci done))"));
    KernelCache cache;
    const double error = SiteKernels::of(direct, nest, host(), cache)->error({{"W", std::vector<float>(x.size(), 1.0f)}, {"I", x}}, 1);
    CHECK(error <= bound_of("(nest (linear 1 1 4096) (at ci done))"));
    CHECK(error >= bound_of("(nest (linear 1 1 4096) (at ci done))") / 8);
}

TEST_CASE("int8 sums are within their bound where no input is cut off", "[unit]") {
    const std::size_t n = 200;
    const double bound = bound_of("(nest (linear 1 1 200) (bind tensor.int8 ci done))");
    std::mt19937_64 random(3);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<float> x(n), w(n);
        for (std::size_t i = 0; i < n; ++i) x[i] = trial % 2 ? draw(random) : draw(random) > 0 ? 1 : 0.5f / 127 - 1e-6f, w[i] = trial % 3 ? draw(random) : x[i];
        const Int8Scales scales{1.0f / 127, 128, weight_scales(w, 1)};
        double exact = 0, got = 0, largest = 0;
        for (std::size_t i = 0; i < n; ++i) {
            exact += static_cast<double>(x[i]) * w[i];
            got += (byte_of(x[i], scales) - 128.0) * whole_weight(w[i], scales.weights[0]);
            largest = std::max(largest, std::fabs(static_cast<double>(w[i])));
        }
        got = static_cast<float>(got) * (scales.input * scales.weights[0]);
        CHECK(std::fabs(got - exact) <= bound * n * largest);
    }
}

TEST_CASE("what is no sum of products has no bound", "[unit]") {
    CHECK(!error_bound(nest_of(statement_of(parse_term("(max_pool 1 8 8 8 2 2 2 2 0 0)")))));
    CHECK(!error_bound(nest_of(statement_of(parse_term("(row_sum 4 8 1)")))));
    for (const std::string& kind : rounding_names()) CHECK(bound_of("(nest (linear 1 4 64) (at co (bind tensor." + kind + " ci done)))") > 0x1p-11);
    CHECK(bound_of("(nest (linear 1 4 64) (at co (at ci done)))") < bound_of("(nest (epilogue bias (linear 1 4 64)) (at co (at ci done)))"));
}
