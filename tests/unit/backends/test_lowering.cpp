#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <catch2/catch.hpp>

#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/lower/restored_copies.hpp"
#include "base/sexpr.hpp"
#include "graph/domain_sets.hpp"
#include "nest/run/interpreter.hpp"

using namespace loopegg;

namespace {

// Compiles a nest for this machine, runs it, and holds it against the fast reference and the nest interpreter.
void check(const std::string& text) {
    CAPTURE(text);
    const Term nest = complete(parse_term(text));
    const Statement statement = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compile_nest(nest, find_target("host"), "k");
    const auto operands = sample_operands(statement, 7);
    Buffers named;
    for (std::size_t b = 1; b < statement.buffers.size(); ++b) named[statement.buffers[b].name] = operands[b];
    const LoadedKernel loaded(kernel);
    const auto got = kernel_output(kernel, operands, std::cref(loaded));
    CHECK(difference(statement, got, reference_output(nest, operands)) == "");
    CHECK(difference(statement, got, interpret(nest, named)) == "");
}

const std::string conv = "(conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)";
std::string over(const std::string& statement, const std::string& schedule) { return "(nest " + statement + " " + schedule + ")"; }

}  // namespace

TEST_CASE("loops in any order give the same convolution", "[unit]") {
    check(over(conv, "(at co (at ci (at oh (at ow (at kh (at kw done))))))"));
    check(over(conv, "(at ci (at kh (at co (at oh (at ow (at kw done))))))"));
    check(over(conv, "(at (pair co kh) (at ci (at oh (at ow (at kw done)))))"));
    check(over(conv, "(at (quo co 3) (at (rem co 3) (at ci (at oh (at ow (at kh (at kw done)))))))"));
}

TEST_CASE("parallel, vector and unrolled loops with accumulators and padded tiles of their own", "[unit]") {
    check(over(conv, "(par (quo co 4) (at oh (stage O (at ci (at kh (at kw (unroll (rem co 4) (vec ow done))))))))"));
    check(over(conv, "(stage I (par (quo co 4) (at oh (stage O (at ci (unroll kh (unroll kw (unroll (rem co 4) (vec ow done)))))))))"));
    check(over(conv, "(par oh (stage I (at (quo co 4) (stage O (at ci (unroll kh (unroll kw (unroll ow (vec (rem co 4) done)))))))))"));
    check(over(conv, "(at co (at oh (at ow (partial vec ci (at kh (at kw done))))))"));
    check(over(conv, "(stage W (at co (at oh (at ow (at ci (at kh (at kw done)))))))"));
    check(over(conv, "(at (quo ci 2) (stage O (at co (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))"));
}

TEST_CASE("epilogues, layouts and other statements", "[unit]") {
    check(over("(epilogue relu (epilogue bias " + conv + "))", "(par (quo co 4) (at oh (stage O (at ci (at kh (at kw (unroll (rem co 4) (vec ow done))))))))"));
    check(over("(epilogue relu (epilogue add " + conv + "))", "(at co (at ci (at oh (at ow (at kh (at kw done))))))"));
    check(over("(layout O co 4 (layout I ci 2 " + conv + "))", "(at co (at ci (at oh (at ow (at kh (at kw done))))))"));
    check(over("(conv2d 1 4 2 2 6 6 3 3 2 2 1 1 1 1)", "(at g (at co (at ci (at oh (at ow (at kh (at kw done)))))))"));
    check("(nest (linear 3 10 7) (at n (at co (at ci done))))");
    check("(nest (matmul 2 4 5 3) (at b (at i (at j (at k done)))))");
    check("(nest (max_pool 1 3 6 6 3 3 2 2 1 1) (at c (at oh (at ow (at kh (at kw done))))))");
    check("(nest (avg_pool 1 3 6 6 2 2 2 2 0 0) (at c (at oh (at ow (at kh (at kw done))))))");
    check("(nest (map gelu 37) (at x done))");
    check("(nest (scale -3.4028235e+38 37) (at x done))");
    check("(nest (zip + 64) (par (quo x 16) (vec (rem x 16) done)))");
    check("(nest (row_softmax 3 5 1) (at r (at x done)))");
}

TEST_CASE("activations are right from far below zero to far above", "[unit]") {
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    const std::vector<std::pair<std::string, std::function<double(double)>>> activations{
        {"gelu", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
        {"sigmoid", sigmoid},
        {"silu", [&](double x) { return x * sigmoid(x); }},
        {"tanh", [](double x) { return std::tanh(x); }}};
    std::vector<float> inputs;
    for (int i = -2048; i < 2048; ++i) inputs.push_back(static_cast<float>(std::pow(i / 256.0, 3) / 4));  // to 128 and back, closest around zero
    for (const auto& [name, f] : activations) {
        const Kernel kernel = compile_nest(parse_term("(nest (map " + name + " 4096) (par (quo x 16) (vec (rem x 16) done)))"), find_target("host"), "k");
        const LoadedKernel loaded(kernel);
        const std::vector<float> got = kernel_output(kernel, {{}, inputs}, std::cref(loaded));
        double worst = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) worst = std::max(worst, std::abs(got[i] - f(inputs[i])) / std::max(1.0, std::abs(f(inputs[i]))));
        CAPTURE(name);
        CHECK(worst < 1e-6);
    }
}

TEST_CASE("restricted nests read small weights and bring missing outputs back", "[unit]") {
    const std::string grouped = over(conv, "(at (diag 2 co ci) (at (rem co 4) (at (rem ci 2) (at oh (at ow (at kh (at kw done)))))))");
    check(grouped);
    CHECK(compile_nest(parse_term(grouped), find_target("host"), "k").parameters[1].elements == 8 * 2 * 9);
    check(over(conv, "(cat (at (span co 0 3) (at ci (at oh (at ow (at kh (at kw done)))))) (at (span co 3 8) (at ci (at oh (at ow (at kh (at kw done)))))))"));
    check("(restore repeat " + over(conv, "(at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done))))))") + ")");
    check("(restore zero " + over("(epilogue bias " + conv + ")", "(at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done))))))") + ")");
    check("(restore repeat " + over(conv, "(at co (at ci (at (quo oh 2) (at (span (rem oh 2) 0 1) (at ow (at kh (at kw done)))))))") + ")");
}

TEST_CASE("storages inside storages, with axes cut unevenly", "[unit]") {  // found by bench_random_terms
    check(
        "(nest (conv2d 1 2 4 4 7 7 3 3 2 2 1 1 1 1) (stage O (par (quo co 3) (stage W (at kw (stage O (at kh (unroll g (at (rem oh 2) (at (rem ow 3) (at (rem "
        "co 3) (at ci (at (quo ow 3) (stage W (at (quo oh 2) done)))))))))))))))");
    check("(nest (epilogue bias (linear 4 8 16)) (at n (stage I (partial serial (pair (diag 2 co ci) (rem ci 8)) (stage O (vec (rem co 4) done))))))");
    check(
        "(nest (conv2d 1 2 4 4 7 7 3 3 2 2 1 1 1 1) (stage W (at kh (stage O (at (rem ci 2) (stage O (at kw (at ow (partial serial (quo ci 2) (at g (stage O "
        "(at oh (at (rem co 3) (at (quo co 3) done))))))))))))))");
    check(
        "(nest (conv2d 1 2 4 4 7 7 3 3 2 2 1 1 1 1) (stage O (vec (rem co 3) (stage O (at kw (at (rem ow 2) (at (quo ow 2) (at (quo co 3) (stage W (at ci (at "
        "kh (unroll oh (at g done)))))))))))))");
    check(
        "(nest (conv2d 1 2 4 4 7 7 3 3 2 2 1 1 1 1) (stage O (at (quo ci 3) (stage O (par g (at kh (stage O (vec (rem co 3) (vec (quo oh 2) (at (rem ci 3) (at "
        "kw (stage I (unroll (quo co 3) (at ow (unroll (rem oh 2) done)))))))))))))))");
}

TEST_CASE("a tile that lies across rows is left alone where its sum has run out", "[unit]") {
    check(
        "(nest (epilogue bias (linear 4 8 16)) (at (quo ci 14) (at (rem ci 14) (at (quo n 2) (stage O (vec (quo co 4) (vec (rem co 4) (at (rem n 2) "
        "done))))))))");
    check(
        "(nest (layout W co 4 (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)) (at (quo ci 3) (stage W (at (rem ci 3) (at (quo co 4) (stage O (vec (rem oh 4) (unroll "
        "(quo oh 4) (at kw (at ow (at kh (stage I (vec (rem co 4) done)))))))))))))");
}

namespace {

const std::vector<Axis> axes{{"co", 12, false}, {"oh", 6, false}, {"ci", 4, true}};

Domain domain(const std::vector<std::vector<std::string>>& parts) {
    Domain d;
    d.restore = Restore::repeat;
    for (const auto& conditions : parts) {
        d.parts.emplace_back();
        for (const std::string& c : conditions) REQUIRE(add_condition(d.parts.back(), c) == "");
    }
    return d;
}

// Every output is written once, and from where output_sources says; elements that nothing computes write nothing.
void check(const Domain& d) {
    CAPTURE(to_string(d));
    const std::vector<std::int64_t> sources = output_sources(d, axes);
    const RestoredCopies r = restored_copies(d, axes);
    std::map<std::int64_t, int> written;
    for (std::int64_t co = 0; co < 12; ++co)
        for (std::int64_t oh = 0; oh < 6; ++oh) {
            const std::int64_t element = co * 6 + oh;
            const bool computed = sources[static_cast<std::size_t>(element)] == element;
            const std::map<std::string, std::int64_t> value{{"co", co}, {"oh", oh}};
            for (const RestoredCopy& c : r.copies) {
                bool holds = true;
                for (const DigitRange& w : c.when) {
                    const std::int64_t digit = w.digit.of(value.at(w.digit.axis));
                    holds = holds && w.lo <= digit && digit < w.hi;
                }
                CHECK((computed || !holds));
                if (c.always) CHECK(holds == computed);
                if (!holds) continue;
                for (std::int64_t k = 0; k < c.count; ++k) {
                    std::map<std::string, std::int64_t> to = value;
                    for (std::size_t a = 0; a < r.axes.size(); ++a) to[r.axes[a].name] += c.offset[a] + k * c.step[a];
                    const std::int64_t at = to["co"] * 6 + to["oh"];
                    REQUIRE((at >= 0 && at < 72));
                    CHECK(sources[static_cast<std::size_t>(at)] == element);
                    ++written[at];
                }
            }
        }
    CHECK(written.size() == 72);
    for (const auto& [at, times] : written) CHECK(times == 1);
}

}  // namespace

TEST_CASE("copies of computed outputs are output_sources turned round", "[unit]") {
    check(domain({{"0 <= co%12 < 6"}}));
    check(domain({{"0 <= co%12 < 1"}}));
    check(domain({{"2 <= co%12 < 7"}}));
    check(domain({{"0 <= oh%2 < 1"}}));
    check(domain({{"0 <= oh%2 < 1", "0 <= co%12 < 4"}}));
    check(domain({{"1 <= co/3%4 < 3", "0 <= ci%4 < 2"}}));
    check(domain({{"0 <= co%12 < 3"}, {"6 <= co%12 < 12"}}));
    check(domain({{"0 <= co%12 < 3", "0 <= oh%2 < 1"}, {"6 <= co%12 < 12"}}));
    CHECK(restored_copies(domain({{"0 <= co%12 < 1"}}), axes).copies.size() == 2);  // itself, and eleven neighbours in one
}
