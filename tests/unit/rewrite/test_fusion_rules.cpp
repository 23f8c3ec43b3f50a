// What becomes one nest is what the rules of a file say, and nothing else.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/files.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "nest/term/blockwise.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/value.hpp"
#include "rewrite/fusion_rules.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

const std::filesystem::path shipped_file = std::filesystem::path(LOOPEGG_RULES) / "fusion.rules";

const FusionRules& shipped_rules() {
    static const FusionRules rules(shipped_file);
    return rules;
}

constexpr const char* first_sites[] = {
    "(nest (conv2d 1 1 4 3 4 4 2 2 1 1 1 1 1 1) (at co (at oh (at ow (at ci (at kh (at kw done)))))))",
    "(nest (epilogue bias (conv2d 1 1 4 2 3 3 1 1 1 1 0 0 1 1)) (par co (at oh (at ow (at ci done)))))",
    "(restore repeat (nest (epilogue bias (conv2d 1 1 4 3 3 3 1 1 1 1 0 0 1 1)) (at (span co 0 2) (at oh (at ow (at ci done))))))",
    "(nest (epilogue bias (linear 4 4 3)) (at n (at co (at ci done))))",
    "(nest (max_pool 1 4 4 4 2 2 2 2 0 0) (at c (at oh (at ow (at kh (at kw done))))))",
    "(nest (zip + 16) (at x done))",
    "(nest (map relu 16) (at x done))",
};

Term naive(const std::string& stmt) { return nest_of(statement_of(parse_term(stmt))); }

std::vector<Term> followers(const Term& nest) {
    const Shape shape = statement_of(nest_parts(nest).statement).buffers[0].shape;
    const std::string size = std::to_string(element_count(shape));
    std::vector<Term> all{naive("(map relu " + size + ")"), naive("(map silu " + size + ")"), naive("(map copy " + size + ")"),
                          naive("(zip + " + size + ")"),    naive("(zip * " + size + ")"),    naive("(scale 0.5 " + size + ")")};
    const std::string first = std::to_string(shape[0] == 1 ? shape[1] : shape[0]),
                      others = std::to_string(element_count(shape) / (shape[0] == 1 ? shape[1] : shape[0]));
    all.push_back(naive("(order I 1243 (move 1 1 " + others + " " + first + "))"));
    if (shape.size() == 4)
        all.push_back(naive("(channel_scale " + std::to_string(shape[0]) + " " + std::to_string(shape[1]) + " " + std::to_string(shape[2] * shape[3]) + ")"));
    return all;
}

// Rows of one to three sites that follow the first.
std::vector<Term> rows() {
    std::vector<Term> all;
    for (const char* text : first_sites) {
        const Term nest = complete(parse_term(text));
        const auto next = followers(nest);
        std::vector<Term> last{Term("site", {nest})};
        for (int length = 0; length < 3; ++length) {
            std::vector<Term> longer;
            for (const Term& value : last)
                for (const Term& follower : next) longer.push_back(Term("then", {value, follower}));
            all.insert(all.end(), longer.begin(), longer.end());
            last = std::move(longer);
        }
    }
    const Term product = naive("(matmul 3 4 5 6)");
    for (const char* fed : {"(feed I (site (order I 1324 (move 1 3 4 6))))", "(feed J (site (order I 1324 (move 1 3 6 5))))",
                            "(feed J (site (order I 1243 (move 1 1 18 5))))", "(feed I (site (order I 1324 (move 2 3 2 6))))"}) {
        const Term text = parse_term(fed);
        for (int times = 0; times < 5; ++times)  // so that a test that takes every fifth row takes each of these
            all.push_back(Term("feed", {text[0], Term("site", {nest_of(statement_of(text[1][0]))}), product}));
    }
    return all;
}

}  // namespace

TEST_CASE("a row of sites becomes what the rules over sites say, step by step", "[unit][rewrite]") {
    const RuleBook book = load_rules(shipped_file, {.judge = false, .deep = false});
    const std::vector<Term> all = rows();
    std::set<std::string> used;
    std::size_t tried = 0, fused = 0;
    for (std::size_t i = 0; i < all.size(); i += std::getenv("LOOPEGG_DEEP") ? 1 : 5) {
        const Term& value = all[i];
        const std::vector<FusionStep> steps = shipped_rules().fuse(value);
        auto facts = std::make_shared<NestAnalysis>();
        EGraph graph;
        graph.attach(facts);
        const ClassId root = graph.add(value);
        Runner runner(graph, bind_rules(book.rules_of(*book.find_phase("fuse")), {facts, {}}));
        CHECK(runner.run({}).stop == StopReason::saturated);
        const std::vector<Term> equal = ClassTerms(graph).all(root, 1000);
        INFO(to_string(bare(value)));
        // Every step is equal by the rules, and where there is none, no rule applies.
        for (const FusionStep& step : steps) {
            CHECK(book.find_rule(step.rule) != nullptr);
            CHECK(std::find(equal.begin(), equal.end(), step.value) != equal.end());
            used.insert(step.rule);
        }
        if (steps.empty()) CHECK(equal.size() == 1);
        ++tried, fused += !steps.empty();
        if (steps.empty() || i % 3 != 0) continue;
        Operands operands;
        for (const Buffer& b : operands_of(value)) {
            operands.emplace_back(static_cast<std::size_t>(element_count(b.shape)));
            for (std::size_t k = 0; k < operands.back().size(); ++k)
                operands.back()[k] = static_cast<float>(static_cast<int>((k * 5 + operands.size() * 3) % 7) - 3);
        }
        CHECK(interpret_value(value, operands) == interpret_value(steps.back().value, operands));
    }
    std::printf("rows of sites: %zu of %zu fused\n", fused, tried);
    for (const Rule* rule : book.rules_of(*book.find_phase("fuse"))) CHECK(used.contains(rule->name));
}

namespace {

Term conv_norm_relu() {
    const Term conv = complete(parse_term("(nest (epilogue bias (conv2d 1 1 4 2 3 3 1 1 1 1 0 0 1 1)) (at co (at oh (at ow (at ci done)))))"));
    return Term("then", {Term("then", {Term("site", {conv}), naive("(channel_scale 1 4 9)")}), naive("(map relu 36)")});
}

std::set<std::string> names_of(const std::vector<FusionStep>& steps) {
    std::set<std::string> names;
    for (const FusionStep& step : steps) names.insert(step.rule);
    return names;
}

// The shipped file without one rule.
std::string without(const std::string& rule) {
    std::string text = read_file(shipped_file);
    const std::size_t begin = text.find("(rule " + rule + " ");
    REQUIRE(begin != text.npos);
    std::size_t end = begin;
    for (int open = 0; open > 0 || end == begin; ++end) open += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    return text.erase(begin, end - begin);
}

}  // namespace

TEST_CASE("a batch norm after a convolution goes into its weights, and an activation after both into its end", "[unit][rewrite]") {
    const std::vector<FusionStep> steps = shipped_rules().fuse(conv_norm_relu());
    CHECK(names_of(steps) == std::set<std::string>{"fuse-batch-norm", "fold-bias", "fold-scale", "prepare-first", "fuse-activation"});
    CHECK(steps.front().rule == "fuse-batch-norm");
    CHECK(to_string(bare(steps.back().value)) ==
          "(prepare fold-bias (prepare fold-scale (site (nest (epilogue relu (epilogue bias (conv2d 1 1 4 2 3 3 1 1 1 1 0 0 1 1))) (at co (at oh (at ow (at ci "
          "done))))))))");
}

TEST_CASE("a rule over sites that is taken out of a file takes its fusion with it", "[unit][rewrite]") {
    const auto fused = [](const std::string& text) {
        ScratchFile file(".rules");
        write_scratch(file.path(), text);
        const auto steps = FusionRules::of(file.path(), shipped_file)->fuse(conv_norm_relu());
        return steps.empty() ? conv_norm_relu() : steps.back().value;
    };
    CHECK(to_string(fused(read_file(shipped_file))).find("then") == std::string::npos);
    CHECK(to_string(fused(without("fuse-activation"))).find("(map relu") != std::string::npos);
    CHECK(to_string(fused(without("fold-scale"))).find("scale_shift") != std::string::npos);
    const std::string no_phase = "(language nest)\n(ruleset loops (rule unroll-loop (at ?a ?s) => (unroll ?a ?s)))\n(phase other :rules loops)\n";
    CHECK(fused(no_phase) == shipped_rules().fuse(conv_norm_relu()).back().value);  // the shipped file fuses where one's own says nothing
    CHECK(fused(no_phase + "(phase fuse :rules loops)\n") == conv_norm_relu());
}

TEST_CASE("a nest writes or reads values where a move would have put them", "[unit][rewrite]") {
    const auto made = [](const Term& value) {
        const std::vector<FusionStep> steps = shipped_rules().fuse(value);
        return steps.empty() ? std::string() : to_string(nest_parts(steps.back().value[0]).statement);
    };
    const auto written = [&](const std::string& stmt, const std::string& move) { return made(Term("then", {Term("site", {naive(stmt)}), naive(move)})); };
    const auto read = [&](const std::string& buffer, const std::string& stmt, const std::string& move) {
        return made(Term("feed", {Term(buffer), Term("site", {naive(move)}), naive(stmt)}));
    };
    CHECK(written("(matmul 3 4 5 6)", "(order I 1324 (move 1 4 3 5))") == "(order O 213 (matmul 3 4 5 6))");
    CHECK(written("(epilogue bias (linear 4 6 5))", "(order I 1243 (move 1 1 6 4))") == "(order O 21 (epilogue bias (linear 4 6 5)))");
    CHECK(read("I", "(matmul 3 4 5 6)", "(order I 1324 (move 1 3 4 6))") == "(order I 213 (matmul 3 4 5 6))");
    CHECK(read("J", "(matmul 3 4 5 6)", "(order I 1324 (move 1 3 6 5))") == "(order J 213 (matmul 3 4 5 6))");
    // A nest has no loop for a part of a dimension, and what it reads stays in rows.
    CHECK(written("(linear 4 6 5)", "(order I 1324 (move 1 2 4 3))") == "");
    CHECK(read("J", "(matmul 3 4 5 6)", "(order I 1243 (move 1 1 18 5))") == "");
}

namespace {

// A softmax between two products, which may read their operands where these lie.
Term softmax_between(const std::string& first, const std::string& second, const std::string& rows, const std::string& columns) {
    const auto by_rows = [&](const char* op) { return naive("(" + std::string(op) + " " + rows + " " + columns + " 1)"); };
    const Term sums("with", {Term("with", {Term("site", {naive(first)}), by_rows("row_max")}), by_rows("row_exp_sum")});
    return Term("feed", {Term("I"), Term("then", {sums, by_rows("row_softmax")}), naive(second)});
}
// The same where a function of two elements comes before the softmax.
Term softmax_of_pairs(const std::string& pairs) {
    Term all = softmax_between("(matmul 2 4 64 3)", "(matmul 2 4 5 64)", "8", "64");
    const Term &softmax = all[1], &sum = softmax[0], &most = sum[0];
    const Term scores("then", {most[0], naive(pairs)});
    return Term("feed", {all[0], Term("then", {Term("with", {Term("with", {scores, most[1]}), sum[1]}), softmax[1]}), all[2]});
}
Term softmax_between() { return softmax_between("(epilogue (times 0.5) (matmul 2 4 64 3))", "(matmul 2 4 5 64)", "8", "64"); }

std::vector<BlockForm> block_forms(const std::string& rules, const Term& value = softmax_between()) {
    ScratchFile file(".rules");
    write_scratch(file.path(), rules);
    return FusionRules(file.path()).block_forms(value);
}

}  // namespace

TEST_CASE("a softmax between two products goes by blocks, in steps that compute the same", "[unit][rewrite]") {
    const std::vector<BlockForm> forms = shipped_rules().block_forms(softmax_between());
    CHECK(forms.size() == 2);  // 32 columns at a time, and all 64
    Operands operands;
    for (const Buffer& b : operands_of(softmax_between())) {
        operands.emplace_back(static_cast<std::size_t>(element_count(b.shape)));
        for (std::size_t k = 0; k < operands.back().size(); ++k)
            operands.back()[k] = static_cast<float>(static_cast<int>((k * 5 + operands.size() * 3) % 7) - 3) / 4;
    }
    const std::vector<float> wanted = interpret_value(softmax_between(), operands);
    for (const BlockForm& form : forms) {
        CHECK(form.rules == std::vector<std::string>{"divide-wide-numbers", "divide-after-product", "sum-in-blocks", "map-in-blocks", "product-in-blocks"});
        const std::vector<float> got = interpret_value(form.value, operands);
        REQUIRE(got.size() == wanted.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).margin(1e-5));
        for (const std::int64_t rows : {1, 2, 3, 4}) CHECK(blockwise_form(form.value, rows).has_value());
        CHECK(!blockwise_form(form.value, 5).has_value());  // more rows than there are
    }
}

TEST_CASE("operands that a product reads in another order do not keep it from going by blocks", "[unit][rewrite]") {
    const Term moved = softmax_between("(order I 213 (matmul 2 4 64 3))", "(order J 213 (matmul 2 4 5 64))", "8", "64");
    const std::vector<BlockForm> forms = shipped_rules().block_forms(moved);
    REQUIRE(forms.size() == 2);
    CHECK(forms.front().rules[1] == "divide-after-read-moved");
    CHECK(blockwise_form(forms.front().value, 2).has_value());
}

TEST_CASE("what is added to scores does not keep them from going by blocks", "[unit][rewrite]") {
    // A row for all rows of all matrices, a matrix for all, a number for each row, a row of each matrix, and a number for each score.
    for (const char* pairs :
         {"(stretch + 8 64 1 1 15 14)", "(stretch + 2 256 1 1 15 14)", "(stretch + 8 64 1 1 15 13)", "(stretch * 2 4 64 1 15 13)", "(zip + 512)"}) {
        CAPTURE(pairs);
        const std::vector<BlockForm> forms = shipped_rules().block_forms(softmax_of_pairs(pairs));
        REQUIRE(forms.size() == 2);
        CHECK(std::count(forms[0].rules.begin(), forms[0].rules.end(), "pair-in-blocks") == 1);
        CHECK(block_forms(without("pair-in-blocks"), softmax_of_pairs(pairs)).empty());
    }
    CHECK(shipped_rules().block_forms(softmax_of_pairs("(stretch + 8 2 32 1 15 13)")).empty());  // a number for each 32 columns
}

TEST_CASE("without any one of its rules, nothing goes by blocks", "[unit][rewrite]") {
    CHECK(!block_forms(read_file(shipped_file)).empty());
    for (const char* rule : {"divide-wide-numbers", "divide-after-product", "sum-in-blocks", "map-in-blocks", "product-in-blocks"}) {
        CAPTURE(rule);
        CHECK(block_forms(without(rule)).empty());
    }
    CHECK(shipped_rules().block_forms(softmax_between(), true).empty());  // sums keep their order
}
