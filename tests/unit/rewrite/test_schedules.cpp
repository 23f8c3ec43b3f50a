// Schedules by rules, for processors and for graphics processors.
#include <catch2/catch.hpp>

#include <filesystem>

#include <algorithm>

#include "base/files.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/schedule/cpu_estimate.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"
#include "rewrite/schedule_rules.hpp"

using namespace loopegg;

namespace {

// The file without one rule.
std::string text_without(const std::filesystem::path& file, const std::string& rule) {
    std::string text = read_file(file);
    const std::size_t begin = text.find("(rule " + rule + " ");
    REQUIRE(begin != text.npos);
    std::size_t end = begin, depth = 0;
    do {
        depth += text[end] == '(', depth -= text[end] == ')';
        ++end;
    } while (depth > 0);
    return text.erase(begin, end - begin);
}

const std::filesystem::path shipped_file = std::filesystem::path(LOOPEGG_RULES) / "tune-cpu.rules";

bool holds(const Term& t, const std::string& word) { return to_string(t).find(word) != std::string::npos; }
bool any_holds(const std::vector<Term>& all, const std::string& word) {
    return std::any_of(all.begin(), all.end(), [&](const Term& t) { return holds(t, word); });
}

std::string without(const std::string& rule) { return text_without(shipped_file, rule); }

std::vector<Term> schedules(const std::string& rules, const char* nest, std::size_t most) {
    ScratchFile file(".rules");
    write_scratch(file.path(), rules);
    return ScheduleRules(file.path(), VectorMachine{2, 4, 32}).schedules(complete(parse_term(nest)), most);
}

std::string shown(const Term& t) { return to_string(t); }

Term best(const char* nest) { return bare(schedules(read_file(shipped_file), nest, 24).front()); }

const char* const product = "(nest (linear 128 128 128) (at n (at co (at ci done))))";
const char* const convolution = "(nest (conv2d 1 1 32 16 16 16 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))";

}  // namespace

TEST_CASE("every schedule computes what the naive nest computes", "[unit][rewrite]") {
    const ScheduleRules rules(shipped_file, VectorMachine{2, 4, 16});
    for (const char* text :
         {"(nest (conv2d 1 1 8 4 6 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
          "(nest (conv2d 1 2 8 4 8 8 3 3 2 2 1 1 1 1) (at g (at co (at ci (at oh (at ow (at kh (at kw done))))))))",
          "(nest (conv2d 1 1 8 8 4 4 3 3 1 1 1 1 1 1) (at (diag 8 co ci) (at oh (at ow (at kh (at kw done))))))",
          "(nest (conv2d 1 1 8 8 4 4 1 1 1 1 0 0 1 1) (cat (at (span co 0 4) (at ci (at oh (at ow done)))) (at (span co 4 8) (at (span ci 0 4) (at oh (at ow "
          "done))))))",
          "(nest (conv2d 1 1 16 8 4 4 1 1 1 1 0 0 1 1) (cat (at (span co 0 8) (at ci (at oh (at ow done)))) (at (diag 2 ci (rem co 8)) (at (span (quo co 8) "
          "1 2) (at (rem co 4) (at (rem ci 4) (at oh (at ow done))))))))",
          "(nest (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at (span kh 1 2) (at kw done)))))))",
          "(restore repeat (nest (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1) (at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done))))))))",
          "(nest (conv2d 1 1 8 12 4 6 1 1 1 1 0 0 1 1) (at co (at ci (at oh (at ow done)))))",
          "(nest (linear 2 12 7) (at n (at co (at ci done))))",
          "(nest (linear 8 16 32) (at n (at co (at ci done))))",
          "(nest (linear 8 32 64) (at n (at (diag 4 ci co) (at (rem co 8) (at (rem ci 16) done)))))",
          "(nest (epilogue relu (epilogue bias (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
          "(nest (conv2d 1 8 1 1 8 8 3 3 2 2 1 1 1 1) (at g (at oh (at ow (at kh (at kw done))))))",
          "(nest (max_pool 1 4 6 6 3 3 2 2 1 1) (at c (at oh (at ow (at kh (at kw done))))))",
          "(nest (avg_pool 1 4 7 7 7 7 1 1 0 0) (at c (at kh (at kw done))))",
          "(nest (row_sum 4 16 1) (at r (at k done)))",
          "(nest (row_max 3 8 5) (at r (at s (at k done))))",
          "(nest (map silu 40) (at x done))",
          "(nest (row_softmax 4 6 3) (at r (at x (at s done))))",
          "(nest (matmul 3 4 6 5) (at b (at i (at j (at k done)))))",
          "(nest (matmul 3 5 9 4) (at b (at i (at j (at k done)))))",
          "(nest (linear 6 10 8) (at n (at co (at ci done))))",
          "(nest (row_sum 3 7 1) (at r (at k done)))",
          "(nest (row_max 3 9 1) (at r (at k done)))",
          "(nest (row_softmax 3 6 1) (at r (at x done)))",
          "(nest (row_softmax 3 5 1) (at r (at x done)))",
          "(nest (stretch * 2 4 3 4 15 2) (at x0 (at x1 (at x2 (at x3 done)))))",
          "(nest (linear 1 7 13) (at co (at ci done)))",
          "(nest (bilinear_output [1,1,1,0|0,1,-1,1] [1,1,1,0|0,1,-1,1] 1 4 4 4) (at c (at th (at tw (at kh (at kw (at i (at j done))))))))"}) {
        const Term nest = complete(parse_term(text));
        const Statement statement = statement_of(nest_parts(nest).statement);
        const Buffers buffers = whole_number_buffers(statement, 3);
        const auto expected = interpret(nest, buffers);
        const auto all = rules.schedules(nest, 24);
        CHECK(all.size() >= 2);
        for (const Term& s : all) {
            CAPTURE(to_string(bare(s)));
            CHECK(domain_of(s) == domain_of(nest));
            CHECK(interpret(s, buffers) == expected);
        }
    }
}

TEST_CASE("the first schedule has a square tile and unrolls some steps of a long sum", "[unit][rewrite]") {
    CHECK(best(product) ==
          parse_term("(nest (linear 128 128 128) (par (quo n 4) (at (quo co 16) (stage O (at (quo ci 4) (unroll (rem ci 4) (unroll (rem n 4) (unroll (rem (quo "
                     "co 4) 4) (vec (rem co 4) done)))))))))"));
}

TEST_CASE("a tile holds what shares its reads: rows of one group rather than groups", "[unit][rewrite]") {
    CHECK(best("(nest (linear 128 128 128) (at n (at (diag 8 ci co) (at (rem co 16) (at (rem ci 16) done)))))") ==
          parse_term("(nest (linear 128 128 128) (par (diag 8 ci co) (at (quo n 4) (stage O (at (quo (rem ci 16) 4) (unroll (rem (rem ci 16) 4) (unroll (rem n "
                     "4) (unroll (quo (rem co 16) 4) (vec (rem (rem co 16) 4) done)))))))))"));
}

TEST_CASE("what goes through memory once comes in vectors, and on one core where it is little", "[unit][rewrite]") {
    CHECK(shown(best("(nest (map relu 65536) (at x done))")) ==
          shown(parse_term("(nest (map relu 65536) (par (quo x 256) (at (quo (rem x 256) 4) (vec (rem x 4) done))))")));
    CHECK(shown(best("(nest (map relu 1024) (at x done))")) ==
          shown(parse_term("(nest (map relu 1024) (at (quo x 256) (at (quo (rem x 256) 4) (vec (rem x 4) done))))")));
    // Seven lanes would be one register of four and a part of another: the row is cut where its whole vectors end.
    CHECK(
        shown(best("(nest (channel_scale 1 64 49) (at c (at x done)))")) ==
        shown(parse_term("(nest (channel_scale 1 64 49) (at c (cat (at (quo (span x 0 48) 4) (vec (rem (span x 0 48) 4) done)) (at (span x 48 49) done))))")));
    CHECK(shown(best("(nest (row_softmax 256 128 1) (at r (at x done)))")) ==
          shown(parse_term("(nest (row_softmax 256 128 1) (par r (at (quo x 4) (vec (rem x 4) done))))")));
    CHECK(shown(best("(nest (row_mean 256 1024 1) (at r (at k done)))")) ==
          shown(parse_term("(nest (row_mean 256 1024 1) (par r (partial vec (rem k 4) (at (quo k 4) done))))")));
}

TEST_CASE("a loop that no whole number of vectors fills is cut where its whole vectors end", "[unit][rewrite]") {
    // 194 = 48 * 4 + 2. Vectors of two lanes would divide it.
    CHECK(shown(best("(nest (matmul 3 196 194 64) (at b (at i (at j (at k done)))))")) ==
          shown(parse_term(
              "(nest (matmul 3 196 194 64) (par (pair b (quo i 7)) (cat (at (quo (span j 0 192) 12) (stage O (at (quo k 4) (unroll (rem k 4) (unroll "
              "(rem i 7) (unroll (rem (quo (span j 0 192) 4) 3) (vec (rem (span j 0 192) 4) done))))))) (stage O (at (quo k 4) (unroll (rem k 4) "
              "(unroll (rem i 7) (vec (span j 192 194) done))))))))")));
    CHECK(
        shown(best("(nest (row_max 588 194 1) (at r (at k done)))")) ==
        shown(parse_term("(nest (row_max 588 194 1) (par r (cat (partial vec (rem (span k 0 192) 4) (at (quo (span k 0 192) 4) done)) (partial vec (span k 192 "
                         "194) done))))")));
    CHECK(shown(best("(nest (row_softmax 588 194 1) (at r (at x done)))")) ==
          shown(parse_term("(nest (row_softmax 588 194 1) (par r (cat (at (quo (span x 0 192) 4) (vec (rem (span x 0 192) 4) done)) (vec (span x 192 194) "
                           "done))))")));
    for (const char* rule : {"cut-vectors", "cut-rows", "cut-elements"}) {
        INFO(rule);
        const char* const nest = rule == std::string("cut-vectors") ? "(nest (matmul 3 196 194 64) (at b (at i (at j (at k done)))))"
                                 : rule == std::string("cut-rows")  ? "(nest (row_max 588 194 1) (at r (at k done)))"
                                                                    : "(nest (row_softmax 588 194 1) (at r (at x done)))";
        CHECK_FALSE(any_holds(schedules(without(rule), nest, 20), "(cat "));
    }
    CHECK_FALSE(any_holds(schedules(read_file(shipped_file), product, 40), "(cat "));  // whole vectors fill it
}

TEST_CASE("cores share blocks of all outputs where the outermost loop alone gives them unequal shares", "[unit][rewrite]") {
    const char* const heads = "(nest (matmul 3 196 64 196) (at b (at i (at j (at k done)))))";
    CHECK(holds(best(heads), "(par (pair b (quo i 4)) "));
    CHECK_FALSE(any_holds(schedules(without("share-blocks"), heads, 40), "(par (pair "));
    CHECK_FALSE(any_holds(schedules(read_file(shipped_file), "(nest (matmul 4 196 64 196) (at b (at i (at j (at k done)))))", 40), "(par (pair "));
}

TEST_CASE("cores copy their rows of an input whose channels lie pages apart, and of no other", "[unit][rewrite]") {
    const char* const apart = "(nest (conv2d 1 1 192 336 56 56 1 1 1 1 0 0 1 1) (at co (at ci (at oh (at ow done)))))";
    const char* const near = "(nest (conv2d 1 1 192 336 4 4 1 1 1 1 0 0 1 1) (at co (at ci (at oh (at ow done)))))";
    CHECK(holds(best(apart), "(stage I "));
    CHECK_FALSE(holds(best(near), "(stage I "));
    CHECK_FALSE(any_holds(schedules(without("copy-rows"), apart, 64), "(stage I "));
    CHECK_FALSE(any_holds(schedules(read_file(shipped_file), product, 64), "(stage I "));
}

TEST_CASE("a part of the domain that a loop of one iteration selects is tiled like any other", "[unit][rewrite]") {
    const std::string sizes = "(nest (conv2d 1 1 64 64 8 8 3 3 1 1 1 1 1 1) ";
    const auto loops_of = [&](const std::string& schedule) { return to_string(best((sizes + schedule + ")").c_str())[1]); };
    const std::string upper_half = loops_of("(at (span (quo co 32) 1 2) (at (rem co 32) (at ci (at oh (at ow (at kh (at kw done)))))))");
    const std::string groups =
        loops_of("(at (diag 2 ci (rem co 32)) (at (span (quo co 32) 1 2) (at (rem co 16) (at (rem ci 32) (at oh (at ow (at kh (at kw done))))))))");
    const std::string one_row = loops_of("(at co (at ci (at oh (at ow (at (span kh 1 2) (at kw done))))))");
    for (const std::string& loops : {upper_half, groups, one_row}) {
        CAPTURE(loops);
        CHECK(loops.find("(par ") != std::string::npos);
        CHECK(loops.find("(stage O ") != std::string::npos);
        CHECK(loops.find("(vec ") != std::string::npos);
    }
}

TEST_CASE("windows in steps have no vectors of ours: the compiler makes them of plain columns", "[unit][rewrite]") {
    CHECK(shown(best("(nest (conv2d 1 96 1 1 112 112 3 3 2 2 1 1 1 1) (at g (at oh (at ow (at kh (at kw done))))))")) ==
          shown(parse_term("(nest (conv2d 1 96 1 1 112 112 3 3 2 2 1 1 1 1) (par g (stage I (at oh (at ow (stage O (unroll kh (unroll kw done))))))))")));
    CHECK(holds(best("(nest (conv2d 1 96 1 1 56 56 3 3 1 1 1 1 1 1) (at g (at oh (at ow (at kh (at kw done))))))"), "(vec "));
}

TEST_CASE("with sums that keep their order there are no partial sums", "[unit][rewrite]") {
    const Term rows = complete(parse_term("(nest (row_mean 256 1024 1) (at r (at k done)))"));
    CHECK(any_holds(ScheduleRules(shipped_file, {VectorMachine{2, 4, 32}, false}).schedules(rows, 20), "partial"));
    CHECK_FALSE(any_holds(ScheduleRules(shipped_file, {VectorMachine{2, 4, 32}, true}).schedules(rows, 20), "partial"));
}

TEST_CASE("without the rule that sweeps elements their loops stay as they stand", "[unit][rewrite]") {
    const char* const relu = "(nest (map relu 65536) (at x done))";
    CHECK(schedules(without("sweep-elements"), relu, 8) == std::vector{complete(parse_term(relu))});
}

TEST_CASE("without the rule that tiles registers there are no tiles but those of the other rules", "[unit][rewrite]") {
    const auto tiled = [](const Term& t) { return holds(t, "(par (quo n:128 ") && holds(t, "(unroll (rem n:128 "); };  // rows that cores share stay whole
    const std::vector<Term> all = schedules(read_file(shipped_file), product, 20), fewer = schedules(without("tile-registers"), product, 20);
    CHECK(std::any_of(all.begin(), all.end(), tiled));
    CHECK(std::none_of(fewer.begin(), fewer.end(), tiled));
    CHECK(any_holds(schedules(read_file(shipped_file), convolution, 40), "(par (quo oh:16 "));
    CHECK_FALSE(any_holds(schedules(without("share-rows"), convolution, 40), "(par (quo oh:16 "));
}

TEST_CASE("without the rule that makes vectors there are none", "[unit][rewrite]") {
    CHECK(any_holds(schedules(read_file(shipped_file), convolution, 20), "(vec "));
    std::string text = without("vectorize-loop");  // a set has a rule, and a phase a set
    const std::string gone = "(ruleset vectors :tags cpu\n  )";
    REQUIRE(text.find(gone) != text.npos);
    text.erase(text.find(gone), gone.size());
    for (const char* next : {" vectors cpu", " vectors one-core"})
        for (std::size_t at; (at = text.find(next)) != text.npos;) text.erase(at, std::string(" vectors").size());
    const std::vector<Term> scalar = schedules(text, convolution, 20);
    CHECK(any_holds(scalar, "unroll"));
    CHECK_FALSE(any_holds(scalar, "(vec "));
}

TEST_CASE("a file that has no phase for schedules leaves nests as they are", "[unit][rewrite]") {
    const std::vector<Term> all =
        schedules("(language nest)\n(ruleset loops (rule unroll-loop (at ?a ?s) => (unroll ?a ?s)))\n(phase other :rules loops)\n", product, 8);
    CHECK(all == std::vector{complete(parse_term(product))});
}

TEST_CASE("a set for the other kind of machine is left out, and a file that has none for this kind gives way to the one that ships", "[unit][rewrite]") {
    const std::string own =
        "(language nest)\n(ruleset mine :tags gpu (rule bind-all (nest ?n (at ?a ?s)) => (nest ?n (bind blockIdx.x ?a ?s)) :when (parallel ?a)))\n"
        "(phase schedule :rules mine :iterations 1)\n";
    ScratchFile file(".rules");
    write_scratch(file.path(), own);
    const Term nest = complete(parse_term(product));
    const VectorMachine cpu{2, 4, 32};
    CHECK(ScheduleRules(file.path(), cpu).schedules(nest, 4) == std::vector{nest});
    CHECK(ScheduleRules::of(file.path(), shipped_file, cpu)->schedules(nest, 4) == ScheduleRules(shipped_file, cpu).schedules(nest, 4));
}

TEST_CASE("a file of one's own with a phase for schedules is all that schedules come from", "[unit][rewrite]") {
    const std::filesystem::path own = std::filesystem::path(LOOPEGG_RULES).parent_path() / "examples/few-tiles.rules";
    const auto rules = ScheduleRules::of(own, shipped_file, VectorMachine{2, 4, 32});
    const std::vector<Term> all = rules->schedules(complete(parse_term(convolution)), 40);
    CHECK(all.size() == 7);  // six tiles, and the nest as it stands
    CHECK_FALSE(any_holds(all, "(par (quo oh:16 "));
    CHECK(rules->varies());  // as the file that it includes does
}

TEST_CASE("schedules come cheapest first by what the estimate reads from their loops, each once", "[unit][rewrite]") {
    for (const VectorMachine& m : {VectorMachine{2, 4, 32}, VectorMachine{4, 8, 16}, VectorMachine{1, 16, 32}}) {
        const Term nest = complete(parse_term(convolution));
        const NaiveLoops loops = naive_loops(statement_of(nest_parts(nest).statement), nest_parts(nest).schedule);
        const std::vector<Term> all = ScheduleRules(shipped_file, m).schedules(nest, 40);
        CHECK(all.size() == 40);
        const auto cost = [&](const Term& t) { return cpu_cost(loops, nest_parts(t).schedule, m); };
        for (std::size_t i = 1; i < all.size(); ++i) {
            CHECK(all[i - 1] != all[i]);
            CHECK(cost(all[i - 1]) <= cost(all[i]));
        }
    }
}

TEST_CASE("transforms of tiles are written out whole, and the cores share blocks of channels and rows first", "[unit][rewrite]") {
    for (const int lanes : {4, 8, 16}) {
        const ScheduleRules rules(shipped_file, VectorMachine{2, lanes, 32});
        for (const auto& [statement, buffer] :
             {std::pair("(layout O c 16 (bilinear_input [-1,0,1,0|0,1,1,0|0,-1,1,0|0,-1,0,1] [-1,0,1,0|0,1,1,0|0,-1,1,0|0,-1,0,1] 2 2 1 64 32 32 1 1))", "I"),
              std::pair("(epilogue relu (layout I c 16 (bilinear_output [1,1,1,1,1,0|0,1,-1,2,-2,0|0,1,1,4,4,0|0,1,-1,8,-8,1] "
                        "[1,1,1,1,1,0|0,1,-1,2,-2,0|0,1,1,4,4,0|0,1,-1,8,-8,1] 1 64 32 32)))",
                        "O")}) {
            const std::vector<Term> all = rules.schedules(nest_of(statement_of(parse_term(statement))), 20);
            const std::string wanted =
                "(par (pair (quo c " + std::to_string(lanes) + ") th) (stage " + buffer + " (at tw (unroll " + (*buffer == 'I' ? "u (unroll v" : "i (unroll j");
            INFO(statement << " " << to_string(bare(all.front())));
            CHECK(holds(bare(all.front()), wanted));
            for (const Term& t : all) CHECK((!holds(t, "vec") || !holds(bare(t), "(at kh")));
        }
    }
}

TEST_CASE("schedules near a schedule visit the same instances in another way", "[unit][rewrite]") {
    const ScheduleRules rules(shipped_file, VectorMachine{2, 8, 32});
    REQUIRE(rules.varies());
    for (const char* text :
         {"(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
          "(restore repeat (nest (conv2d 1 1 16 3 16 16 3 3 1 1 1 1 1 1) (at (span (quo co 4) 0 1) (at (rem co 4) (at ci (at oh (at ow (at kh (at kw "
          "done)))))))))",
          "(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at (diag 4 co ci) (at (rem co 4) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))"}) {
        const Term nest = complete(parse_term(text));
        for (const Term& start : rules.schedules(nest, 6)) {
            INFO(to_string(start));
            const std::vector<Term> near = rules.near(start, 1, 12);
            CHECK(near.size() >= 4);
            for (const Term& t : near) {
                INFO(to_string(t));
                CHECK(t != start);
                CHECK(domain_of(t) == domain_of(start));
                CHECK_NOTHROW(resolve(t));
            }
            CHECK(near == rules.near(start, 1, 12));  // one seed, one answer
        }
    }
}

namespace for_gpus {
namespace {

const std::filesystem::path shipped_file = std::filesystem::path(LOOPEGG_RULES) / "tune-gpu.rules";

bool holds(const Term& t, const std::string& word) { return to_string(t).find(word) != std::string::npos; }

Term naive(const char* statement) { return complete(nest_of(statement_of(parse_term(statement)))); }

std::string without(const std::string& rule) { return text_without(shipped_file, rule); }

}  // namespace

TEST_CASE("a late layer's sums are split among threads on a large processor, and without the rule they are not", "[unit][rewrite]") {
    const Term nest = naive("(conv2d 1 1 512 512 4 4 3 3 1 1 1 1 1 1)");
    const auto split = [](const std::vector<Term>& all) {
        return std::count_if(all.begin(), all.end(), [](const Term& t) { return holds(t, "(partial threadIdx.z"); });
    };
    const ScheduleRules all(shipped_file, GpuMachine{});
    CHECK(split(all.schedules(nest, 40)) > 0);
    ScratchFile file(".rules");
    write_scratch(file.path(), without("split-sums"));
    const ScheduleRules fewer(file.path(), GpuMachine{});
    CHECK(split(fewer.schedules(nest, 40)) == 0);
    CHECK(fewer.schedules(nest, 1).size() == 1);
}

TEST_CASE("without any rule that binds threads a nest stays as it is", "[unit][rewrite]") {
    ScratchFile file(".rules");
    write_scratch(file.path(),
                  "(language nest)\n(ruleset loops (rule unroll-on-gpu (at ?a ?s) => (unroll ?a ?s) :when (<= (extent ?a) 8) (<= (instances ?s) 288)))\n(phase "
                  "schedule :rules loops :iterations 1 :nodes 1000)\n");
    const Term nest = naive("(conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1)");
    for (const Term& t : ScheduleRules(file.path(), GpuMachine{}).schedules(nest, 4)) CHECK_FALSE(holds(t, "bind"));
}

TEST_CASE("restricted nests keep what they leave out, and have shared tiles of their own", "[unit][rewrite]") {
    const ScheduleRules rules(shipped_file, GpuMachine{});
    for (const char* text :
         {"(restore repeat (nest (conv2d 1 1 64 64 8 8 3 3 1 1 1 1 1 1) (at (span co 0 32) (at ci (at oh (at ow (at kh (at kw done))))))))",
          "(nest (conv2d 1 1 64 64 8 8 3 3 1 1 1 1 1 1) (at (diag 4 co ci) (at (rem co 16) (at (rem ci 16) (at oh (at ow (at kh (at kw done))))))))"}) {
        const Term nest = complete(parse_term(text));
        const std::vector<Term> all = rules.schedules(nest, 30);
        CHECK(all.size() == 30);
        CHECK(std::any_of(all.begin(), all.end(), [](const Term& t) { return holds(t, "(shared W)") || holds(t, "(ahead W)"); }));
        for (const Term& t : all) {
            CHECK(nest_parts(t).restore == nest_parts(nest).restore);
            CHECK_NOTHROW(resolve(t));
        }
    }
}

TEST_CASE("schedules come cheapest first, each once, and keep to the limits of their machine", "[unit][rewrite]") {
    GpuMachine small;
    small.cores = 1, small.registers = 32768, small.shared_bytes = 64 * 1024, small.block_shared_bytes = 16 * 1024, small.block_threads = 256,
    small.memory_gbs = 25.6, small.ghz = 0.92;
    const Term nest = naive("(conv2d 1 1 128 128 16 16 3 3 1 1 1 1 1 1)");
    for (const GpuMachine& m : {GpuMachine{}, small}) {
        const std::vector<Term> all = ScheduleRules(shipped_file, m).schedules(nest, 20);
        for (std::size_t i = 1; i < all.size(); ++i) {
            CHECK(all[i - 1] != all[i]);
            CHECK(gpu_cost(all[i - 1], m) <= gpu_cost(all[i], m));
        }
        CHECK(gpu_cost(all.back(), m) < 1e9);  // what does not fit costs more than anything
    }
}

TEST_CASE("a warp that reads neighbours costs less than one that reads far apart", "[unit][rewrite]") {
    const std::int64_t neighbours[]{0, 1, 2, 31}, apart[]{0, 32, 64, 992}, before_the_start[]{-1, 0};
    CHECK(lines_of_warp(neighbours) == 1);
    CHECK(lines_of_warp(apart) == 4);
    CHECK(lines_of_warp(before_the_start) == 2);
    const auto depthwise = [](const char* threads, const char* own) {
        return complete(parse_term("(nest (conv2d 1 96 1 1 112 112 3 3 2 2 1 1 1 1) (bind blockIdx.x g (bind threadIdx.x " + std::string(threads) +
                                   " (stage O (unroll kh (unroll kw " + own + "))))))"));
    };
    // 8 rows of 7 threads that have 8 columns each, or 7 rows of 56 threads that have 8 rows each
    const Term far_columns = depthwise("(pair oh (quo ow 8))", "(unroll (rem ow 8) done)"),
               near_columns = depthwise("(pair (quo oh 8) ow)", "(unroll (rem oh 8) done)");
    CHECK(gpu_cost(near_columns, GpuMachine{}) < gpu_cost(far_columns, GpuMachine{}));
    // So the first schedule of a layer in which nothing else decides lets neighbours read neighbours.
    const Term first = ScheduleRules(shipped_file, GpuMachine{}).schedules(naive("(conv2d 1 96 1 1 112 112 3 3 2 2 1 1 1 1)"), 1).front();
    CAPTURE(to_string(first));
    CHECK(gpu_cost(first, GpuMachine{}) < gpu_cost(far_columns, GpuMachine{}));
}

}  // namespace for_gpus
