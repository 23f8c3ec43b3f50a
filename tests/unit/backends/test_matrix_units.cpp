// Products on units that multiply tiles of bf16 numbers: which schedules use a unit, what they compute, and the code for AMX.
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include <fmt/format.h>

#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/runtime/loopegg_runtime.h"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "graph/weights.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "tests/unit/backends/rounded_operands.hpp"

using namespace loopegg;

namespace {

const MatrixUnit amx{"tdpbf16ps", "bf16", 16, 16, 32, 2, 8, 16, 52, 8, {"amx-tile", "amx-bf16"}};

const MatrixUnit amx_int8{"tdpbusd", "int8", 16, 16, 64, 4, 8, 16, 52, 8, {"amx-tile", "amx-int8"}};
const MatrixUnit vnni{"vpdpbusd", "int8", 8, 16, 16, 4, 6, 16, 5, 2, {"avx512vnni", "avx512vl"}};

// This machine with a unit that schedules may use, whether it has one or not.
Target with_unit(Target target, const MatrixUnit& unit = amx) {
    target.machine.units = {unit};
    target.allowed = {unit.operands};
    return target;
}
// This machine, for which products with a unit become plain code that rounds in the same way.
Target without_unit() {
    Target target = find_target("host");
    target.machine.units.clear();
    return target;
}
Target sapphire_rapids(const MatrixUnit& unit = amx) {
    Target target = with_unit(find_target("host"), unit);
    target.name = "sapphirerapids";
    target.tvm = {
        {"kind", "llvm"}, {"mtriple", "x86_64-linux-gnu"}, {"mcpu", "sapphirerapids"}, {"mattr", {"+amx-tile", "+amx-bf16", "+amx-int8", "+avx512vnni"}}};
    return target;
}

constexpr const char* nests[]{
    "(nest (epilogue relu (epilogue bias (conv2d 1 1 32 32 16 16 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 1 1 64 32 8 8 1 1 2 2 0 0 1 1) (at co (at ci (at oh (at ow done)))))",
    "(nest (conv2d 2 2 32 32 8 8 3 3 2 2 1 1 1 1) (at n (at g (at co (at ci (at oh (at ow (at kh (at kw done)))))))))",
    "(nest (epilogue add (epilogue bias (conv2d 1 1 16 16 8 8 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (epilogue bias (linear 16 64 48)) (at n (at co (at ci done))))",
};

std::vector<Term> on_units(const Term& nest, std::size_t most, const MatrixUnit& unit = amx) {
    std::vector<Term> all;
    for (const Term& t : schedule_rules(with_unit(find_target("host"), unit))->schedules(nest, 96))
        if (rounds_operands(t) && all.size() < most) all.push_back(t);
    return all;
}

std::vector<float> run(const Kernel& kernel, const std::vector<std::vector<float>>& operands) {
    return kernel_output(kernel, operands, [&](std::span<float* const> buffers) { LoadedKernel{kernel}(buffers); });
}

// int8 numbers of scale 1 are whole numbers, whose sums are exact: the output is the reference's to the last bit.
void check_int8(const Term& schedule, const Kernel& kernel) {
    const Statement s = statement_of(nest_parts(schedule).statement);
    const auto whole = sample_operands(s, 7);
    CHECK(difference(s, run(kernel, whole), reference_output(schedule, whole)) == "");
    auto numbers = long_numbers(s), rounded = numbers;
    for (const Access& r : s.reads) {
        const auto b = static_cast<std::size_t>(r.buffer);
        for (std::size_t i = 0; i < numbers[b].size(); ++i) numbers[b][i] *= 30, rounded[b][i] = rounded_to_int8(numbers[b][i]);
    }
    const std::vector<float> wanted = reference_output(schedule, rounded);
    const double largest = largest_difference(wanted, std::vector<float>(wanted.size(), 0.0f));
    CHECK(largest_difference(run(kernel, numbers), wanted) <= 3e-7 * largest);  // additions after the sums may be taken another way
}

void check_numbers(const Term& schedule, const Kernel& kernel) {
    const Statement s = statement_of(nest_parts(schedule).statement);
    const auto whole = sample_operands(s, 7);  // whole numbers lose nothing
    CHECK(difference(s, run(kernel, whole), reference_output(schedule, whole)) == "");
    const auto numbers = long_numbers(s);
    const std::vector<float> got = run(kernel, numbers);
    CHECK(largest_difference(got, reference_output(schedule, rounded_products(s, numbers, rounded_to_bf16))) < 1e-4);
    CHECK(largest_difference(got, reference_output(schedule, numbers)) > 1e-4);
}

// The instruction in machine code: C4 E2, a byte with the operand and F3, 5C.
std::size_t tile_products(const std::string& code) {
    std::size_t count = 0;
    for (std::size_t i = 0; i + 3 < code.size(); ++i) {
        const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(code[i + k]); };
        count += byte(0) == 0xc4 && byte(1) == 0xe2 && (byte(2) & 0x87) == 0x02 && byte(3) == 0x5c;
    }
    return count;
}

}  // namespace

TEST_CASE("bf16 keeps seven bits behind the point, to the nearest, ties to even", "[unit]") {
    CHECK(rounded_to_bf16(1.0f) == 1.0f);
    CHECK(rounded_to_bf16(255.0f) == 255.0f);
    CHECK(rounded_to_bf16(1.0f + 0x1p-9f) == 1.0f);
    CHECK(rounded_to_bf16(1.0f + 0x1p-8f) == 1.0f);                      // a tie goes to the even neighbour: down
    CHECK(rounded_to_bf16(1.0f + 0x1p-7f + 0x1p-8f) == 1.0f + 0x1p-6f);  // and up
    CHECK(rounded_to_bf16(-1.0f - 0x1p-7f - 0x1p-8f) == -1.0f - 0x1p-6f);
    CHECK(std::isinf(rounded_to_bf16(INFINITY)));
    CHECK(std::isinf(rounded_to_bf16(3.4e38f)));  // the nearest number is beyond the largest
    CHECK(std::isnan(rounded_to_bf16(NAN)));
}

TEST_CASE("schedules use a unit only where its rounding is allowed", "[rules]") {
    const Term nest = complete(parse_term(nests[0]));
    Target target = with_unit(find_target("host"));
    target.allowed.clear();
    for (const Term& t : schedule_rules(target)->schedules(nest, 96)) CHECK_FALSE(rounds_operands(t));
    CHECK_FALSE(on_units(nest, 1).empty());
    CHECK_THROWS_WITH(allowing(without_unit(), {"bf16"}), Catch::Contains("has no unit that multiplies such numbers"));
    CHECK(roundings_of(on_units(nest, 1).front()) == std::set<std::string>{"bf16"});
}

TEST_CASE("schedules for a unit give the reference's output on a machine without it", "[rules]") {
    for (const char* text : nests) {
        const Term nest = complete(parse_term(text));
        const std::vector<Term> all = on_units(nest, 3);
        CAPTURE(text);
        CHECK_FALSE(all.empty());
        for (const Term& schedule : all) {
            CAPTURE(to_string(bare(schedule)));
            const Kernel kernel = compile_nest(schedule, without_unit(), "k");
            CHECK(kernel.units == 0);
            check_numbers(schedule, kernel);
        }
    }
}

TEST_CASE("int8 schedules give the reference's output by plain arithmetic, and by dot products where the processor has them", "[rules]") {
    for (const char* text : nests) {
        const Term nest = complete(parse_term(text));
        CAPTURE(text);
        for (const MatrixUnit& unit : {vnni, amx_int8}) {
            const std::vector<Term> all = on_units(nest, 1, unit);
            CHECK(all.empty() == (std::string(text).find("conv2d 2 2") != std::string::npos));  // each group would need a scale of its own
            for (const Term& schedule : all) {
                CAPTURE(to_string(bare(schedule)));
                const Kernel plain = compile_nest(schedule, without_unit(), "k");
                CHECK(plain.units == 0);
                check_int8(schedule, plain);
                const Kernel unit_code = compile_nest(schedule, sapphire_rapids(unit), "k");
                CHECK(unit_code.units == (unit.instruction == vnni.instruction ? loopeggrt_vnni : loopeggrt_amx_int8));
                if (loopeggrt_missing_units(unit_code.units))
                    CHECK_THROWS_WITH(LoadedKernel{unit_code}, Catch::Contains("which this machine does not offer"));
                else
                    check_int8(schedule, unit.instruction == vnni.instruction ? compile_nest(schedule, with_unit(find_target("host"), unit), "k") : unit_code);
            }
        }
    }
}

TEST_CASE("convolutions of random sizes give the reference's output with packed operands", "[rules]") {
    std::mt19937_64 random(11);
    const auto one_of = [&](std::initializer_list<int> all) { return *(all.begin() + static_cast<std::ptrdiff_t>(random() % all.size())); };
    for (int round = 0; round < 6; ++round) {
        const int kernel = one_of({1, 3}), stride = one_of({1, 2}), size = one_of({4, 6, 8, 12});
        const std::string conv = fmt::format("(conv2d 1 1 {} {} {} {} {} {} {} {} {} {} 1 1)", one_of({8, 16, 24}), one_of({16, 20, 32}), size, size, kernel,
                                             kernel, stride, stride, kernel / 2, kernel / 2);
        const Term nest = complete(parse_term("(nest " + conv + " (at co (at ci (at oh (at ow (at kh (at kw done)))))))"));
        for (const Term& schedule : on_units(nest, 1)) {
            CAPTURE(to_string(bare(schedule)));
            check_numbers(schedule, compile_nest(schedule, without_unit(), "k"));
        }
    }
}

TEST_CASE("for a processor with AMX, tiles are multiplied in its registers", "[rules]") {
    for (const char* text : nests) {
        const Term nest = complete(parse_term(text));
        std::size_t with_tiles = 0;
        for (const Term& schedule : on_units(nest, 4)) {
            CAPTURE(to_string(bare(schedule)));
            const Kernel kernel = compile_nest(schedule, sapphire_rapids(), "k");
            with_tiles += tile_products(kernel.code) > 0;
            CHECK((kernel.units == loopeggrt_amx_bf16) == (tile_products(kernel.code) > 0));
            if (loopeggrt_missing_units(loopeggrt_amx_bf16))
                CHECK_THROWS_WITH(LoadedKernel{kernel}, Catch::Contains("needs AMX with bf16"));
            else
                check_numbers(schedule, kernel);
        }
        CAPTURE(text);
        CHECK(with_tiles > 0);
    }
}

TEST_CASE("units of a target are checked with their place in its file", "[errors]") {
    const auto with = [](const std::string& unit) { return R"({"name": "t", "tvm": {"kind": "llvm"}, "machine": {"units": [)" + unit + "]}}"; };
    CHECK_NOTHROW(check_target("t.json", with(R"({"instruction": "x", "operands": "bf16", "rows": 1, "columns": 16, "depth": 2, "packed": 2})")));
    CHECK_THROWS_WITH(check_target("t.json", with(R"({"instruction": "x", "operands": "bf17", "rows": 1, "columns": 16, "depth": 2})")),
                      Catch::Contains("t.json:1:") && Catch::Contains("'operands' is 'bf17', expected bf16 or int8 or tf32"));
    CHECK_THROWS_WITH(check_target("t.json", with(R"({"instruction": "x", "operands": "bf16", "rows": 0, "columns": 16, "depth": 2})")),
                      Catch::Contains("t.json:1:"));
    CHECK_THROWS_WITH(check_target("t.json", with(R"({"instruction": "x", "operands": "bf16", "rows": 1, "columns": 16, "depth": 3, "packed": 2})")),
                      Catch::Contains("'depth' must be a multiple of 'packed', 2"));
}
