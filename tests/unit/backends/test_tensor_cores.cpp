// Products on tensor cores: schedules that round operands where a user allows it, what they compute, and how far that is from float32.
#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "backends/kernel/cuda_emulator.hpp"
#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/lower/default_schedule.hpp"
#include "backends/lower/nvrtc.hpp"
#include "backends/network/rounding_error.hpp"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "graph/load.hpp"
#include "graph/weights.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "tests/unit/backends/rounded_operands.hpp"

using namespace loopegg;

namespace {

constexpr const char* nests[]{
    "(nest (epilogue relu (epilogue bias (conv2d 1 1 16 16 4 4 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 1 1 32 16 8 8 3 3 2 2 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 2 1 16 16 4 4 1 1 1 1 0 0 1 1) (at n (at co (at ci (at oh (at ow done))))))",
    "(nest (epilogue bias (linear 8 32 32)) (at n (at co (at ci done))))",
    "(restore repeat (nest (conv2d 1 1 32 16 4 4 3 3 1 1 1 1 1 1) (at (span co 0 16) (at ci (at oh (at ow (at kh (at kw done))))))))",
};

Target tensor_target(const std::string& kind = "tf32") { return allowing(find_target("h200"), {kind}); }

// With the rules for tensor cores alone: nests that are small enough for the emulator are faster without.
Target tensors_alone(const ScratchFile& rules, const std::string& kind) {
    std::string text = read_file(shipped("rules/tune-gpu.rules"));
    const std::string both = ":rules gpu-blocks gpu-tensor";
    text.replace(text.find(both), both.size(), ":rules gpu-tensor");
    write_scratch(rules.path(), text);
    Target target = tensor_target(kind);
    target.rules = rules.path();
    return target;
}

// The schedules of a nest that multiply on tensor cores, few threads first: the emulator has a thread for each.
// Schedules that hold a word, where one is given.
std::vector<std::pair<Term, Kernel>> on_tensor_cores(const Term& nest, const std::string& kind, std::size_t most, const std::string& word = "") {
    static std::map<std::string, std::unique_ptr<ScratchFile>> files;
    static std::map<std::string, Target> targets;
    if (!targets.contains(kind)) targets.emplace(kind, tensors_alone(*(files[kind] = std::make_unique<ScratchFile>(".rules")), kind));
    const Target& target = targets.at(kind);
    std::vector<std::pair<Term, Kernel>> all;
    for (const Term& t : schedule_rules(target)->schedules(nest, word.empty() ? 48 : 400))
        if (rounds_operands(t) && all.size() < 3 * most && to_string(t).find(word) != std::string::npos) all.emplace_back(t, compile_nest(t, target, "k"));
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
        return a.second.launch.threads() * a.second.launch.blocks() < b.second.launch.threads() * b.second.launch.blocks();
    });
    if (all.size() > most) all.resize(most);
    return all;
}

std::vector<float> emulated(const Kernel& kernel, const std::vector<std::vector<float>>& operands) {
    return kernel_output(kernel, operands, [&](std::span<float* const> buffers) { emulate_cuda(kernel, buffers); });
}

}  // namespace

TEST_CASE("TF32 keeps ten bits behind the point, to the nearest", "[unit]") {
    CHECK(rounded_to_tf32(1.0f) == 1.0f);
    CHECK(rounded_to_tf32(2047.0f) == 2047.0f);
    CHECK(rounded_to_tf32(1.0f + 0x1p-10f) == 1.0f + 0x1p-10f);
    CHECK(rounded_to_tf32(1.0f + 0x1p-12f) == 1.0f);
    CHECK(rounded_to_tf32(1.0f + 0x1p-11f) == 1.0f + 0x1p-10f);  // a tie goes away from zero
    CHECK(rounded_to_tf32(-1.0f - 0x1p-11f) == -1.0f - 0x1p-10f);
    CHECK(std::isinf(rounded_to_tf32(INFINITY)));
    CHECK(std::isnan(rounded_to_tf32(NAN)));
}

TEST_CASE("fp16 keeps ten bits behind the point up to 65,504, to the nearest", "[unit]") {
    std::uint32_t wrong = 0;
    for (std::uint32_t bits = 0; bits < 0xffffu; ++bits) {
        const float number = from_fp16_bits(static_cast<std::uint16_t>(bits)), next = from_fp16_bits(static_cast<std::uint16_t>(bits + 1));
        if (std::isnan(number)) continue;
        wrong += fp16_bits(number) != bits;
        if (!std::isfinite(number) || !std::isfinite(next)) continue;
        const float middle = number + (next - number) / 2;
        wrong += fp16_bits(middle) != (bits % 2 == 0 ? bits : bits + 1);  // a tie goes to the even neighbour
        wrong += fp16_bits(std::nextafter(middle, number)) != bits;
        wrong += fp16_bits(std::nextafter(middle, next)) != bits + 1;
    }
    CHECK(wrong == 0);
    CHECK(rounded_to_fp16(65519.0f) == 65504.0f);
    CHECK(std::isinf(rounded_to_fp16(65520.0f)));
    CHECK(std::isinf(rounded_to_fp16(INFINITY)));
    CHECK(std::isnan(rounded_to_fp16(NAN)));
}

TEST_CASE("schedules round operands only where that is allowed", "[rules]") {
    const Term nest = complete(parse_term("(nest (conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"));
    for (const Term& t : schedule_rules(find_target("h200"))->schedules(nest, 48)) CHECK_FALSE(rounds_operands(t));
    const std::vector<Term> allowed = schedule_rules(tensor_target())->schedules(nest, 48);
    CHECK(std::any_of(allowed.begin(), allowed.end(), rounds_operands));
    CHECK_THROWS_WITH(allowing(find_target("h200"), {"tf23"}), Catch::Contains("unknown rounding 'tf23'") && Catch::Contains("tf32"));
    for (const char* without : {"nano", "gtx1080ti", "host"})
        CHECK_THROWS_WITH(allowing(find_target(without), {"tf32"}), Catch::Contains("has no unit that multiplies such numbers"));
}

TEST_CASE("schedules for tensor cores give the reference's output, emulated", "[rules]") {
    for (const std::string kind : {"tf32", "fp16", "bf16"}) {
        bool split = false, ahead = false;
        for (const char* text : nests) {
            if (kind == "bf16" && text != nests[0]) continue;  // it differs from fp16 in its numbers alone
            const Term nest = complete(parse_term(text));
            const Statement s = statement_of(nest_parts(nest).statement);
            auto all = split ? std::vector<std::pair<Term, Kernel>>{} : on_tensor_cores(nest, kind, 1, "(partial threadIdx");
            if (all.empty() && !ahead) all = on_tensor_cores(nest, kind, 1, "(stage (ahead");
            if (all.empty()) all = on_tensor_cores(nest, kind, 1);
            CAPTURE(text, kind);
            CHECK_FALSE(all.empty());
            for (const auto& [schedule, kernel] : all) {
                CAPTURE(to_string(bare(schedule)));
                split = split || to_string(schedule).find("(partial threadIdx") != std::string::npos;
                ahead = ahead || to_string(schedule).find("(stage (ahead") != std::string::npos;
                CHECK(kernel.code.find("loopegg_mma_" + kind + "((&(") != std::string::npos);
                const auto whole = sample_operands(s, 7);  // whole numbers lose nothing
                CHECK(difference(s, emulated(kernel, whole), reference_output(schedule, whole)) == "");
                const auto numbers = long_numbers(s);
                const std::vector<float> got = emulated(kernel, numbers);
                const auto rounding = [&](float v) { return rounded_to(kind, v); };
                CHECK(largest_difference(got, reference_output(schedule, rounded_products(s, numbers, rounding))) < 1e-4);
                CHECK(largest_difference(got, reference_output(schedule, numbers)) > 1e-4);
            }
            CHECK_FALSE(make_cubin(all.front().second.code, "sm_90").empty());
        }
        CHECK((split || ahead));
        if (kind != "bf16") CHECK((split && ahead));
    }
}

TEST_CASE("a CPU rounds what tensor cores would round", "[flow]") {
    const Target host = find_target("host");
    const Statement s = statement_of(parse_term("(epilogue bias (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1))"));
    const Term nest = with_rounded_operands(default_nest(s, host), "tf32");
    REQUIRE(rounds_operands(nest));
    const auto numbers = long_numbers(s);
    const Kernel kernel = compile_nest(nest, host, "k");
    const std::vector<float> got = kernel_output(kernel, numbers, [&](std::span<float* const> buffers) { LoadedKernel{kernel}(buffers); });
    CHECK(largest_difference(got, reference_output(nest, rounded_products(s, numbers, rounded_to_tf32))) < 1e-4);
    CHECK(largest_difference(got, reference_output(nest, numbers)) > 1e-4);
}

TEST_CASE("what no instruction of tensor cores does is refused in words", "[errors]") {
    const auto refused = [](const char* text, const char* target) { return compile_nest(complete(parse_term(text)), find_target(target), "k"); };
    CHECK_THROWS_WITH(refused("(nest (linear 8 32 32) (bind blockIdx.x (quo co 16) (bind threadIdx.x (rem co 16) (at n (bind tensor.tf32 ci done)))))", "h200"),
                      Catch::Contains("a sum in steps of 32") && Catch::Contains("expected (bind tensor.KIND"));
    CHECK_THROWS_WITH(
        refused("(nest (linear 8 32 32) (bind blockIdx.x (quo co 16) (at (quo ci 8) (bind threadIdx.x (rem co 16) (at n (bind tensor.tf32 (rem ci 8) "
                "done))))))",
                "h200"),
        Catch::Contains("other outputs than 2 times 2"));
    const char* good =
        "(nest (linear 8 16 8) (bind blockIdx.x (quo co 16) (stage O (stage (shared I) (stage (shared W) (bind threadIdx.x (pair (rem co 8) (quo n 2)) "
        "(bind tensor.tf32 ci (unroll (quo (rem co 16) 8) (unroll (rem n 2) done)))))))))";
    CHECK(refused(good, "h200").code.find("mma.sync") != std::string::npos);
    CHECK_THROWS_WITH(refused(good, "gtx1080ti"), Catch::Contains("sm_61 has no unit that multiplies tf32 numbers"));
    // Columns before rows: threads of one group would have different rows.
    CHECK_THROWS_WITH(
        refused("(nest (linear 8 16 8) (bind blockIdx.x (quo co 16) (stage O (stage (shared I) (stage (shared W) (bind threadIdx.x (pair (quo n 2) (rem co "
                "8)) (bind tensor.tf32 ci (unroll (quo (rem co 16) 8) (unroll (rem n 2) done)))))))))",
                "h200"),
        Catch::Contains("rows and columns of a warp"));
}

TEST_CASE("how far rounding moves a network's outputs is measured", "[flow]") {
    auto wide = nlohmann::json::parse(read_file(shipped("examples/tiny-residual.json")));  // so wide that tensor cores pay
    wide["inputs"][0]["shape"] = {1, 64, 16, 16};
    for (nlohmann::json& node : wide["nodes"])
        if (node["op"] == "conv2d") node["attrs"]["out_channels"] = 128;
    const ScratchFile file(".json");
    write_scratch(file.path(), wide.dump());
    const Model model = load_model(file.path().string(), 1);
    JudgedInputs judged;
    for (std::uint64_t seed = 0; seed < 3; ++seed) judged.inputs.push_back({normal_tensor(model.graph.inputs[0].shape, seed, model.graph.inputs[0].name)});
    KernelCache kernels;
    CHECK(rounding_error({model.graph, model.weights, {}}, find_target("h200"), judged, kernels).sites == 0);
    const RoundingError e = rounding_error({model.graph, model.weights, {}}, tensor_target(), judged, kernels);
    CHECK(e.sites > 0);
    CHECK(e.largest > 0);
    CHECK(e.largest < 0.01);
    CHECK(e.mean <= e.largest);
    CHECK(e.outputs == 3);
}
