// Schedules for graphics processors are what the rules of a file give, and nothing else.
#include <catch2/catch.hpp>

#include <algorithm>

#include "base/files.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"
#include "rewrite/schedule_rules.hpp"

#include "rule_text.hpp"

using namespace loopegg;

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
