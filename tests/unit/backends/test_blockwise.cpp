// What is computed block by block is what the nodes compute one after the other, and a chain of rules leads there.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/network/block_candidates.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "graph/builder.hpp"
#include "graph/interpreter.hpp"
#include "graph/weights.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/blockwise.hpp"

using namespace loopegg;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Sizes {
    std::int64_t matrices, rows, columns, depth, width, row_block, column_block;
};

Term naive(const std::string& stmt) { return nest_of(statement_of(parse_term(stmt))); }

// A softmax of a product with scores times a scale, times another matrix: by blocks.
Term blocks(const Sizes& s) {
    const auto n = [](std::int64_t v) { return std::to_string(v) + " "; };
    const Term product = naive("(epilogue (times 0.5) (matmul 1 " + n(s.row_block) + n(s.column_block) + n(s.depth) + "))");
    const Term wide = naive("(wide_exp " + n(s.row_block) + n(s.column_block) + ")");
    const Term weighted = naive("(matmul 1 " + n(s.row_block) + n(s.width) + n(s.column_block) + ")"),
               all = naive("(row_sum " + n(s.row_block) + n(s.column_block) + "1)");
    const Term quotient = naive("(row_divide " + n(s.row_block) + n(s.width) + ")");
    const Term chain("then", {Term("columns", {Term(s.column_block), product}), wide});
    const Term value("then", {Term("sums", {chain, weighted, all}), quotient});
    const Term stmt("blockwise", {Term(s.matrices), Term(s.rows), Term(s.columns), value});
    return nest_of(statement_of(stmt));
}

using Values = std::vector<float>;

// The same in double precision, by its definition.
Values by_definition(const Sizes& s, const Values& q, const Values& k, const Values& v) {
    Values out;
    const auto at = [](const Values& of, std::int64_t i) { return static_cast<double>(of[static_cast<std::size_t>(i)]); };
    for (std::int64_t b = 0; b < s.matrices; ++b)
        for (std::int64_t i = 0; i < s.rows; ++i) {
            std::vector<double> row;
            for (std::int64_t j = 0; j < s.columns; ++j) {
                double sum = 0;
                for (std::int64_t d = 0; d < s.depth; ++d) sum += at(q, (b * s.rows + i) * s.depth + d) * at(k, (b * s.depth + d) * s.columns + j);
                row.push_back(sum / 2);
            }
            const double most = *std::max_element(row.begin(), row.end());
            double all = 0;
            for (double& x : row) all += x = std::exp(x - most);
            for (std::int64_t x = 0; x < s.width; ++x) {
                double sum = 0;
                for (std::int64_t j = 0; j < s.columns; ++j) sum += row[static_cast<std::size_t>(j)] * at(v, (b * s.columns + j) * s.width + x);
                out.push_back(static_cast<float>(sum / all));
            }
        }
    return out;
}

Values compiled(const Term& nest, const std::vector<Values>& operands) {
    const Kernel kernel = compile_nest(nest, find_target("host"), "k");
    const LoadedKernel loaded(kernel);
    return kernel_output(kernel, operands, std::cref(loaded));
}

bool close(const Values& a, const Values& b, double allowed = 1e-5) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::isnan(a[i]) != std::isnan(b[i]) || std::abs(static_cast<double>(a[i]) - b[i]) > allowed * std::max(1.0f, std::abs(b[i]))) return false;
    return true;
}

std::vector<Values> random_operands(const Sizes& s) {
    const Statement whole = statement_in(blocks(s));
    std::vector<Values> all{{}};
    for (std::size_t b = 1; b < whole.buffers.size(); ++b) all.push_back(normal_tensor(whole.buffers[b].shape, 3, whole.buffers[b].name).values);
    return all;
}

void check(const Sizes& s, const std::vector<Values>& operands) {
    CAPTURE(s.matrices, s.rows, s.columns, s.depth, s.width, s.row_block, s.column_block);
    const Term nest = blocks(s);
    const Values wanted = by_definition(s, operands[1], operands[2], operands[3]);
    CHECK(close(reference_output(nest, operands), wanted));
    CHECK(close(compiled(nest, operands), wanted));
}

const Sizes small{2, 8, 96, 6, 16, 4, 32};

}  // namespace

TEST_CASE("sums of wide numbers go on from block to block", "[unit]") {
    for (const Sizes& s : {small, Sizes{1, 4, 64, 8, 5, 4, 64}, Sizes{3, 6, 32, 4, 32, 1, 16}, Sizes{1, 1, 40, 3, 1, 1, 8}}) check(s, random_operands(s));
}

TEST_CASE("wide numbers neither overflow nor lose a row whose first blocks are masked", "[unit]") {
    SECTION("scores of thousands") {
        auto operands = random_operands(small);
        for (float& v : operands[1]) v *= 2000;
        check(small, operands);
    }
    SECTION("equal scores in each row") {
        auto operands = random_operands(small);
        std::fill(operands[1].begin(), operands[1].end(), 0.0f);
        check(small, operands);
    }
    SECTION("scores of -inf in the first block, in the last one, in all but one place") {
        auto operands = random_operands(small);
        for (std::int64_t row = 0; row < small.matrices * small.rows; ++row) operands[1][static_cast<std::size_t>(row * small.depth)] = 1;
        for (const auto& [begin, end] : {std::pair{0, 32}, {64, 96}, {1, 96}, {0, 95}}) {
            for (std::int64_t b = 0; b < small.matrices; ++b)
                for (std::int64_t j = 0; j < small.columns; ++j)
                    operands[2][static_cast<std::size_t>(b * small.depth * small.columns + j)] = j >= begin && j < end ? -infinity : 0.0f;
            check(small, operands);
        }
    }
    SECTION("a row of -inf is no number, as one node after the other computes it") {
        auto operands = random_operands(small);
        for (std::int64_t i = 0; i < small.depth; ++i) operands[1][static_cast<std::size_t>(i)] = i == 0 ? -infinity : 1.0f;
        for (std::int64_t j = 0; j < small.columns; ++j) operands[2][static_cast<std::size_t>(j)] = 1;
        check(small, operands);
    }
}

TEST_CASE("what is no value in blocks is refused", "[unit]") {
    for (const char* text :
         {"(blockwise 1 8 8 (site (nest (matmul 1 4 8 2) done)))",
          "(blockwise 1 8 8 (then (sums (columns 16 (nest (matmul 1 4 16 2) done)) (nest (matmul 1 4 2 16) done) (nest (row_sum 4 16 1) done)) "
          "(nest (row_divide 4 2) done)))",
          "(blockwise 1 8 8 (then (sums (then (columns 4 (nest (matmul 1 4 4 2) done)) (pair (stretch + 8 8 1 1 15 14) (nest (stretch + 4 4 1 1 "
          "15 13) done))) (nest (matmul 1 4 2 4) done) (nest (row_sum 4 4 1) done)) (nest (row_divide 4 2) done)))",
          "(blockwise 1 8 8 (then (sums (columns 4 (nest (matmul 1 4 4 2) done)) (nest (matmul 1 4 2 4) done) (nest (row_sum 4 4 1) done)) "
          "(nest (row_divide 4 3) done)))",
          "(blockwise 0 8 8 done)"})
        CHECK_THROWS_AS(statement_of(parse_term(text)), UserError);
}

namespace {

// Self-attention of two heads, whose queries and values a product reads where the projections wrote them.
Graph attention(std::int64_t tokens) {
    using Ints = std::vector<std::int64_t>;
    constexpr std::int64_t heads = 2, width = 16;
    GraphBuilder b("attention");
    const std::string x = b.input("x", {1, tokens, width});
    const auto head = [&](const std::string& name, Ints order) {
        const std::string y = b.node("reshape", name + ".heads", {b.linear(name, x, width)}, {{"shape", Ints{0, 0, heads, width / heads}}});
        return b.node("transpose", name + ".order", {y}, {{"order", std::move(order)}});
    };
    const std::string q = head("q", {0, 2, 1, 3}), k = head("k", {0, 2, 3, 1}), v = head("v", {0, 2, 1, 3});
    const std::string scores = b.node("scale", "scale", {b.node("matmul", "scores", {q, k})}, {{"value", 0.5}});
    const std::string context = b.node("matmul", "context", {b.node("softmax", "softmax", {scores}), v});
    return b.finish({b.node("transpose", "merge", {context}, {{"order", Ints{0, 2, 1, 3}}})});
}

}  // namespace

TEST_CASE("a network computes a chain of nodes block by block where its schedules say so", "[unit]") {
    const Target host = find_target("host");
    const Graph graph = attention(64);
    const Weights weights = initial_weights(graph, 1);
    const std::vector<BlockChain> chains = block_chains(graph, host);
    REQUIRE(chains.size() == 1);
    CHECK(chains[0].site == "scores");
    const std::vector<Term> nests = block_candidates(chains[0], host);
    REQUIRE(nests.size() == 4);
    const Tensor x = normal_tensor({1, 64, 16}, 3, "x");
    const Values wanted = interpret(graph, weights, {{"x", x}}).at("merge").values;
    for (const Term& nest : {nests.front(), nests.back()}) {
        const Schedules schedules{{"scores", nest}};
        const NetworkPlan plan = plan_network(graph, weights, schedules, host);
        std::set<std::string> rules;
        for (const NetworkPlan::Step& step : plan.steps)
            if (step.nest)
                for (const FusedRule& rule : step.nest->fused) rules.insert(rule.rule);
        for (const char* rule : {"divide-wide-numbers", "divide-after-read-moved", "sum-in-blocks", "map-in-blocks", "product-in-blocks", "fuse-scale"})
            CHECK(rules.contains(rule));
        for (const NetworkPlan::Step& step : plan.steps)
            for (const std::string& value : step.values())
                if (const auto size = plan.sizes.find(value); size != plan.sizes.end()) CHECK(size->second < 2 * 64 * 64);  // no step has all scores
        ScratchFile name(".network");
        const ScratchFolder folder(name.path());
        compile_network({graph, weights, schedules}, host, folder.path() / "compiled");
        LoadedNetwork network(folder.path() / "compiled");
        const std::vector<Tensor> inputs{x};
        CHECK(close(network.run(inputs)[0].values, wanted, 1e-4));
    }
    CHECK_THROWS_AS(plan_network(attention(32), initial_weights(attention(32), 1), {{"scores", nests.front()}}, host), UserError);
}

namespace {

struct Masked {
    std::int64_t batch, tokens;
    Shape mask;
    bool mask_first = false;  // of the two operands of the sum
};

Graph masked_attention(const Masked& m) {
    constexpr std::int64_t heads = 2, width = 6;
    GraphBuilder b("masked");
    const std::string q = b.input("q", {m.batch, heads, m.tokens, width}), k = b.input("k", {m.batch, heads, width, m.tokens}),
                      v = b.input("v", {m.batch, heads, m.tokens, width}), mask = b.input("mask", m.mask);
    const std::string scores = b.node("scale", "scale", {b.node("matmul", "scores", {q, k})}, {{"value", 0.5}});
    const std::string masked = b.node("add", "masked", m.mask_first ? std::vector{mask, scores} : std::vector{scores, mask});
    return b.finish({b.node("matmul", "context", {b.node("softmax", "softmax", {masked}), v})});
}

// Numbers and -inf. Some rows, where the mask has rows, are -inf alone.
Tensor mask_of(const Shape& shape) {
    Tensor mask = normal_tensor(shape, 5, "mask");
    const auto columns = static_cast<std::size_t>(shape.back());
    for (std::size_t i = 0; i < mask.values.size(); ++i)
        if (i % 3 == 1 || (shape[shape.size() - 2] > 1 && i / columns % 7 == 2)) mask.values[i] = -infinity;
    return mask;
}

}  // namespace

TEST_CASE("masks that are added to scores are added block by block, for any number of tokens", "[unit]") {
    const Target host = find_target("host");
    for (const Masked& m : {Masked{1, 64, {1, 1, 1, 64}}, Masked{1, 37, {37, 37}}, Masked{2, 40, {2, 1, 1, 40}}, Masked{2, 24, {1, 2, 24, 24}},
                            Masked{1, 77, {1, 2, 1, 77}, true}, Masked{1, 40, {1, 1, 40, 1}}, Masked{2, 70, {2, 2, 70, 70}}}) {
        CAPTURE(m.batch, m.tokens, m.mask);
        const Graph graph = masked_attention(m);
        Values wanted;
        std::vector<Tensor> inputs;
        std::map<std::string, Tensor> named;
        for (const GraphInput& in : graph.inputs) {
            inputs.push_back(in.name == "mask" ? mask_of(in.shape) : normal_tensor(in.shape, 4, in.name));
            named[in.name] = inputs.back();
        }
        wanted = interpret(graph, {}, named).at("context").values;
        const std::vector<BlockChain> chains = block_chains(graph, host);
        const auto chain = std::find_if(chains.begin(), chains.end(), [](const BlockChain& c) { return c.site == "scores"; });
        REQUIRE(chain != chains.end());
        const std::vector<Term> nests = block_candidates(*chain, host);
        REQUIRE(nests.size() >= 2);
        for (const Term& nest : {nests.front(), nests.back()}) {
            CAPTURE(to_string(nest[0][0]), to_string(nest[0][3]).substr(0, 60));
            const std::vector<Values> operands{{}, inputs[0].values, inputs[1].values, inputs[3].values, inputs[2].values};
            CHECK(close(reference_output(nest, operands), wanted));
            CHECK(close(compiled(nest, operands), wanted));
            const Schedules schedules{{"scores", nest}};
            ScratchFile name(".network");
            const ScratchFolder folder(name.path());
            compile_network({graph, {}, schedules}, host, folder.path() / "compiled");
            LoadedNetwork network(folder.path() / "compiled");
            CHECK(close(network.run(inputs)[0].values, wanted));
        }
    }
}

TEST_CASE("what is not measured goes by blocks where its scores do not stay in the caches", "[unit]") {
    Target host = find_target("host");
    host.machine.cores = 2, host.machine.l2_kb = 256;
    CHECK(with_block_estimates(attention(64), {}, host).empty());
    CHECK(with_block_estimates(attention(512), {}, host).contains("scores"));
    const Schedules given{{"scores", parse_term("(nest (matmul 2 512 512 8) done)")}};
    CHECK(with_block_estimates(attention(512), given, host) == given);
}
