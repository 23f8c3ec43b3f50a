// Transforms of tiles as compiled kernels, and sites that run as rows of nests.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include <catch2/catch.hpp>

#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/network/network.hpp"
#include "backends/target/target_rules.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "graph/load.hpp"
#include "graph/weights.hpp"
#include "nest/domain/bilinear_nests.hpp"
#include "nest/term/statement.hpp"
#include "rules/load.hpp"
#include "tests/unit/backends/other_machine.hpp"

using namespace loopegg;

namespace {

const BilinearForm& shipped_form(const std::string& name) {
    static const Loaded rules = check_rules(shipped("rules/algorithms.rules"), {.judge = false});
    const BilinearForm* form = rules.find_algorithm(name);
    REQUIRE(form != nullptr);
    return *form;
}

// A statement's text with the matrices of two algorithms in place of IN or OUT.
std::string with_matrices(std::string text, const std::string& down, const std::string& along) {
    const BilinearForm &d = shipped_form(down), &a = shipped_form(along);
    for (const auto& [word, matrices] :
         {std::pair("IN", to_string(d.input) + " " + to_string(a.input)), {"OUT", to_string(d.output) + " " + to_string(a.output)}})
        if (const std::size_t at = text.find(word); at != text.npos) text.replace(at, std::string_view(word).size(), matrices);
    return text;
}

void check(const Term& nest) {
    CAPTURE(to_string(nest));
    const Statement statement = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compile_nest(nest, find_target("host"), "k");
    const auto operands = sample_operands(statement, 7);
    const LoadedKernel loaded(kernel);
    CHECK(difference(statement, kernel_output(kernel, operands, std::cref(loaded)), reference_output(nest, operands)) == "");
}

}  // namespace

TEST_CASE("transforms of tiles give what their statements say, with every schedule", "[unit]") {
    const std::filesystem::path file = shipped("rules/tune-cpu.rules");
    const ScheduleRules narrow(file, VectorMachine{2, 4, 32}), wide(file, VectorMachine{2, 8, 16});
    const std::string two = "winograd-2-3", four = "winograd-4-3", one = "direct-1";
    for (const std::string& stmt :
         {with_matrices("(layout O c 8 (bilinear_input IN 2 2 1 8 6 6 1 1))", two, two),
          with_matrices("(layout O c 16 (bilinear_input IN 4 4 2 16 6 9 1 1))", four, four), with_matrices("(bilinear_input IN 2 4 1 4 8 8 0 0)", two, four),
          with_matrices("(layout O c 8 (bilinear_input IN 1 4 1 8 5 9 0 1))", one, four),
          with_matrices("(epilogue relu (epilogue bias (layout I c 16 (bilinear_output OUT 1 16 8 8))))", four, four),
          with_matrices("(epilogue add (layout I c 8 (bilinear_output OUT 1 8 7 6)))", four, four),
          with_matrices("(layout I c 4 (bilinear_output OUT 2 12 5 4))", two, two), with_matrices("(bilinear_output OUT 1 4 8 5)", four, one)})
        for (const ScheduleRules* rules : {&narrow, &wide}) {
            const std::vector<Term> all = rules->schedules(nest_of(statement_of(parse_term(stmt))), 12);
            CHECK(all.size() >= 2);
            const std::size_t step = std::getenv("LOOPEGG_DEEP") ? 1 : 3;
            for (std::size_t i = 0; i < all.size(); i += step)
                if (to_string(all[i]).find("(vec ") != std::string::npos) check(all[i]);  // the plain loops have a test of their own
        }
}

TEST_CASE("a transform in plain loops is right too", "[unit]") {
    const std::string form = "winograd-2-3";
    check(complete(
        parse_term(with_matrices("(nest (bilinear_input IN 2 2 1 2 4 4 1 1) (at c (at th (at tw (at u (at v (at kh (at kw done))))))))", form, form))));
    check(complete(parse_term(with_matrices("(nest (bilinear_output OUT 1 2 3 4) (at c (at th (at tw (at kh (at kw (at i (at j done))))))))", form, form))));
}

TEST_CASE("sites that run as rows of nests compute what the network computes", "[unit]") {
    const Model m = load_model(shipped("examples/tiny-residual.json").string());
    const Target host = find_target("host");
    const auto rules = schedule_rules(host);
    const Term nest = fused_nests(m.graph, {}, host).at("conv2");  // with a bias, an addition and a ReLU after its sums
    std::vector<Tensor> inputs;
    for (const GraphInput& in : m.graph.inputs) inputs.push_back(normal_tensor(in.shape, 3, in.name));
    const ScratchFile plain(".network");
    const CompiledNetwork before = compile_network({m.graph, m.weights, {}}, host, plain.path());
    const auto wanted = LoadedNetwork(plain.path()).run(inputs);
    for (const char* name : {"winograd-2-3", "winograd-4-3"}) {
        const BilinearPair pair{shipped_form(name), shipped_form(name)};
        auto nests = bilinear_nests(nest, pair);
        REQUIRE(nests.has_value());
        nests->input = rules->schedules(nests->input, 1).front(), nests->output = rules->schedules(nests->output, 1).front();
        const Term row = bilinear_row(pair, *nests);
        const ScratchFile fast(".network");
        const CompiledNetwork after = compile_network({m.graph, m.weights, {{"conv2", row}}}, host, fast.path());
        CHECK(after.steps == before.steps + 2);
        CHECK(fused_nests(m.graph, {{"conv2", row}}, host).at("conv2") == row);
        const auto got = LoadedNetwork(fast.path()).run(inputs);
        double difference = 0, scale = 1e-6;
        for (std::size_t i = 0; i < wanted[0].values.size(); ++i) {
            difference = std::max(difference, std::fabs(static_cast<double>(got[0].values[i]) - wanted[0].values[i]));
            scale = std::max(scale, std::fabs(static_cast<double>(wanted[0].values[i])));
        }
        CHECK(difference / scale < 1e-5);
        std::filesystem::remove_all(fast.path());
    }
    std::filesystem::remove_all(plain.path());
}

TEST_CASE("sites that run as rows of nests on the i7 and on the Cortex-A57 compute what the network computes", "[device]") {
    const Model m = load_model(shipped("examples/tiny-residual.json").string());
    const Target host = find_target("host");
    const Tensor input = normal_tensor(m.graph.inputs[0].shape, 3, "x");
    const ScratchFile file(".network");
    const ScratchFolder plain(file.path().string() + ".plain");
    compile_network({m.graph, m.weights, {}}, host, plain.path());
    const std::vector<float> wanted = LoadedNetwork(plain.path()).run(std::vector{input})[0].values;
    for (const char* name : {"i7", "a57"}) {
        const Target target = find_target(name);
        if (!runs_here(target, "sites that run as rows of nests on the i7 and on the Cortex-A57 compute what the network computes")) continue;
        const Term nest = fused_nests(m.graph, {}, target).at("conv2");
        for (const char* algorithm : {"winograd-2-3", "winograd-4-3"}) {
            CAPTURE(name, algorithm);
            const BilinearPair pair{shipped_form(algorithm), shipped_form(algorithm)};
            auto nests = bilinear_nests(nest, pair);
            REQUIRE(nests.has_value());
            for (Term* each : {&nests->input, &nests->products, &nests->output}) *each = schedule_rules(target)->schedules(*each, 1).front();
            const ScratchFolder folder(file.path().string() + ".folder");
            compile_network({m.graph, m.weights, {{"conv2", bilinear_row(pair, *nests)}}}, target, folder.path());
            const std::vector<float> got = run_for(target, folder.path(), input);
            REQUIRE(got.size() == wanted.size());
            for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-4).margin(1e-4));
        }
    }
}
