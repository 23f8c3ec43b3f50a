// Products on units that multiply tiles of bf16 and int8 numbers: which schedules use a unit, what they compute, and the code for AMX, AVX-512 and Arm.
#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/network/int8_calibration.hpp"
#include "backends/network/network.hpp"
#include "backends/runtime/loopegg_runtime.h"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "graph/builder.hpp"
#include "graph/interpreter.hpp"
#include "graph/load.hpp"
#include "graph/operators.hpp"
#include "graph/weights.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "tests/unit/backends/other_machine.hpp"
#include "tests/unit/backends/rounded_operands.hpp"

using namespace loopegg;

namespace {

const MatrixUnit amx{"tdpbf16ps", "bf16", 16, 16, 32, 2, 8, 16, 52, 8, {"amx-tile", "amx-bf16"}};

const MatrixUnit amx_int8{"tdpbusd", "int8", 16, 16, 64, 4, 8, 16, 52, 8, {"amx-tile", "amx-int8"}};
const MatrixUnit vnni{"vpdpbusd",
                      "int8",
                      8,
                      16,
                      16,
                      4,
                      6,
                      16,
                      5,
                      2,
                      {"avx512vnni", "avx512vl"},
                      {{"llvm.x86.avx512.vpdpbusd.512", 1, 16, 1}, {"llvm.x86.avx512.vpdpbusd.256", 1, 8, 1}, {"llvm.x86.avx512.vpdpbusd.128", 1, 4, 1}}};
const MatrixUnit avx512_bf16{"vdpbf16ps",
                             "bf16",
                             8,
                             16,
                             16,
                             2,
                             6,
                             64,
                             8,
                             2,
                             {"avx512bf16", "avx512vl"},
                             {{"llvm.x86.avx512bf16.dpbf16ps.512", 1, 16, 1}, {"llvm.x86.avx512bf16.dpbf16ps.256", 1, 8, 1}}};

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
    target.tvm = {{"kind", "llvm"},
                  {"mtriple", "x86_64-linux-gnu"},
                  {"mcpu", "sapphirerapids"},
                  {"mattr", {"+amx-tile", "+amx-bf16", "+amx-int8", "+avx512vnni", "+avx512bf16"}}};
    return target;
}

constexpr const char* nests[]{
    "(nest (epilogue relu (epilogue bias (conv2d 1 1 32 32 16 16 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 1 1 64 32 8 8 1 1 2 2 0 0 1 1) (at co (at ci (at oh (at ow done)))))",
    "(nest (conv2d 2 2 32 32 8 8 3 3 2 2 1 1 1 1) (at n (at g (at co (at ci (at oh (at ow (at kh (at kw done)))))))))",
    "(nest (epilogue add (epilogue bias (conv2d 1 1 16 16 8 8 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (epilogue bias (linear 16 64 48)) (at n (at co (at ci done))))",
    "(nest (epilogue bias (linear 37 64 48)) (at n (at co (at ci done))))",  // rows that fill no equal tiles
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

// VDPBF16PS in machine code: 62, a byte of the map 0F38, a byte of the prefix F3, any byte, 52.
std::size_t vector_products(const std::string& code) {
    std::size_t count = 0;
    for (std::size_t i = 0; i + 4 < code.size(); ++i) {
        const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(code[i + k]); };
        count += byte(0) == 0x62 && (byte(1) & 0x07) == 0x02 && (byte(2) & 0x87) == 0x06 && byte(4) == 0x52;
    }
    return count;
}

// A convolution of small whole numbers, some of them negative.
Model whole_convolution() {
    GraphBuilder b("whole");
    const std::string first = b.conv("first", b.input("x", {1, 16, 8, 8}), {.out = 32, .kernel = 3, .padding = 1, .bias = true});
    Model model;
    model.graph = b.finish({b.relu("relu", first)});
    for (const Node& node : model.graph.nodes)
        for (const Parameter& p : parameters_of(node)) model.weights[p.name] = whole_tensor(p.shape, 5);
    Tensor scales{{34}, std::vector<float>(34, 1.0f)};  // of the input, its zero, and of 32 output channels
    scales.values[1] = 128;
    model.weights[int8_scales_name("first")] = scales;
    return model;
}

Target neoverse(const std::string& unit) {
    Target target = read_target(shipped("examples/targets/neoverse.json"));
    std::erase_if(target.machine.units, [&](const MatrixUnit& u) { return u.instruction != unit; });
    return allowing(target, {target.machine.units.at(0).operands});
}

// The network for this target, with the first schedule that its unit multiplies.
void compile_for_unit(const Model& model, const Target& target, const std::filesystem::path& folder) {
    Schedules schedules;
    for (const auto& [site, nest] : fused_nests(model.graph, {}, target))
        for (const Term& t : schedule_rules(target)->schedules(nest, 96))
            if (rounds_operands(t)) schedules.try_emplace(site, t);
    REQUIRE(schedules.contains("first"));
    compile_network({model.graph, model.weights, schedules}, target, folder);
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
    CHECK(std::isnan(rounded_to_bf16(std::bit_cast<float>(0xffffffffu))));  // whose bits would carry into the sign
}

TEST_CASE("a NaN stays one in bf16 whatever its bits, denormals round, and a NaN counts as zero in int8", "[rules]") {
    const Term nest = complete(parse_term(nests[1]));
    const Statement s = statement_of(nest_parts(nest).statement);
    for (const std::uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7f800001u, 0x7fc00000u}) {
        auto numbers = long_numbers(s);
        for (float& v : numbers[1]) v = std::bit_cast<float>(bits);
        for (const Term& schedule : on_units(nest, 1)) {
            const std::vector<float> got = run(compile_nest(schedule, without_unit(), "k"), numbers);
            CHECK(std::all_of(got.begin(), got.end(), [](float v) { return std::isnan(v); }));
        }
        for (const Term& schedule : on_units(nest, 1, vnni)) {
            const std::vector<float> got = run(compile_nest(schedule, without_unit(), "k"), numbers);
            CHECK(std::all_of(got.begin(), got.end(), [](float v) { return v == 0; }));
        }
    }
    auto tiny = sample_operands(s, 7);
    for (float& v : tiny[1]) v *= 0x1p-133f;  // whole multiples of the smallest number of bf16
    for (const Term& schedule : on_units(nest, 1)) {
        const std::vector<float> got = run(compile_nest(schedule, without_unit(), "k"), tiny);
        CHECK(difference(s, got, reference_output(schedule, tiny)) == "");
    }
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

TEST_CASE("for a processor with AVX512_BF16, vectors of bf16 numbers are multiplied, and elsewhere loading the kernel names the unit", "[rules]") {
    for (const char* text : nests) {
        CAPTURE(text);
        for (const Term& schedule : on_units(complete(parse_term(text)), 2, avx512_bf16)) {
            CAPTURE(to_string(bare(schedule)));
            check_numbers(schedule, compile_nest(schedule, without_unit(), "k"));
            const Kernel kernel = compile_nest(schedule, sapphire_rapids(avx512_bf16), "k");
            CHECK(kernel.units == loopeggrt_avx512_bf16);
            CHECK(vector_products(kernel.code) > 0);
            if (loopeggrt_missing_units(kernel.units))
                CHECK_THROWS_WITH(LoadedKernel{kernel}, Catch::Contains("needs AVX-512 with dot products of bf16"));
            else
                check_numbers(schedule, kernel);
        }
    }
}

TEST_CASE("units of Arm processors give the interpreter's output to the last bit on whole numbers, and are asked for elsewhere", "[flow]") {
    const Model model = whole_convolution();
    const Tensor input = whole_tensor(model.graph.inputs[0].shape, 9);
    const Tensor wanted = interpret(model.graph, model.weights, {{"x", input}}).at(model.graph.outputs[0]);
    for (const char* unit : {"bfmmla", "smmla", "sdot"}) {
        CAPTURE(unit);
        const Target target = neoverse(unit);
        const ScratchFolder folder(ScratchFile(".network").path());
        compile_for_unit(model, target, folder.path());
        if (!runs_here(target, "units of Arm processors")) return;
        CHECK(run_for(target, folder.path(), input) == wanted.values);
        if (native_architecture() == target.architecture()) continue;
        setenv("QEMU_CPU", "cortex-a57", 1);  // without any of them
        CHECK_THROWS_WITH(run_for(target, folder.path(), input), Catch::Contains("it needs") && Catch::Contains("products of"));
        unsetenv("QEMU_CPU");
    }
}

TEST_CASE("a unit that code for the target may not use, or that no network can check for, is refused in words", "[errors]") {
    const Term nest = complete(parse_term(nests[1]));
    const auto refused = [&](MatrixUnit unit) { return compile_nest(on_units(nest, 1, unit).at(0), sapphire_rapids(unit), "k"); };
    MatrixUnit other = avx512_bf16;
    other.features = {"sve"};
    CHECK_THROWS_WITH(refused(other), Catch::Contains("the unit 'vdpbf16ps', which needs 'sve'") && Catch::Contains("mattr"));
    other.features = {"avx512f"};
    CHECK_THROWS_WITH(refused(other), Catch::Contains("no feature that a network can check") && Catch::Contains("avx512bf16"));
    other = avx512_bf16, other.forms = {{"llvm.x86.no.such.thing", 1, 16, 1}};
    CHECK_THROWS_WITH(refused(other), Catch::Contains("LLVM has no intrinsic 'llvm.x86.no.such.thing'"));
    other.forms = {{"llvm.x86.avx512.vpdpbusd.512", 1, 16, 1}};  // of other numbers
    CHECK_THROWS_WITH(refused(other), Catch::Contains("TVM refuses the nest"));
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
                      Catch::Contains("t.json:1:") && Catch::Contains("'operands' is 'bf17', expected bf16 or fp16 or int8 or tf32"));
    CHECK_THROWS_WITH(check_target("t.json", with(R"({"instruction": "x", "operands": "bf16", "rows": 0, "columns": 16, "depth": 2})")),
                      Catch::Contains("t.json:1:"));
    CHECK_THROWS_WITH(check_target("t.json", with(R"({"instruction": "x", "operands": "bf16", "rows": 1, "columns": 16, "depth": 3, "packed": 2})")),
                      Catch::Contains("'depth' must be a multiple of 'packed', 2"));
    const auto with_form = [&](const std::string& form) {
        return with(R"({"instruction": "x", "operands": "int8", "rows": 8, "columns": 8, "depth": 16, "packed": 4, "forms": [)" + form + "]}");
    };
    CHECK_NOTHROW(check_target("t.json", with_form(R"({"intrinsic": "llvm.x", "rows": 2, "columns": 2, "words": 2})")));
    CHECK_THROWS_WITH(check_target("t.json", with_form(R"({"intrinsic": "x", "rows": 1, "columns": 4, "words": 1})")),
                      Catch::Contains("t.json:1:") && Catch::Contains("'x' is no intrinsic of LLVM"));
    CHECK_THROWS_WITH(check_target("t.json", with_form(R"({"intrinsic": "llvm.x", "rows": 2, "columns": 4, "words": 2})")),
                      Catch::Contains("as many columns as rows"));
    CHECK_THROWS_WITH(check_target("t.json", with_form(R"({"intrinsic": "llvm.x", "rows": 1, "columns": 3, "words": 1})")),
                      Catch::Contains("no whole number of rows and columns"));
}
