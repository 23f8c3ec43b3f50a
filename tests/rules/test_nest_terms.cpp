// Random terms from saturated e-graphs: the analysis, isl and the interpreter agree on every one. LOOPEGG_DEEP=1 tries 100,000.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <random>

#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "nest/domain.hpp"
#include "nest/facts.hpp"
#include "nest/interpreter.hpp"
#include "nest/isl_judge.hpp"
#include "nest/space.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

bool deep() { return std::getenv("LOOPEGG_DEEP") != nullptr; }

constexpr const char* statements[] = {
    "(conv2d 1 1 8 8 5 5 2 2 1 1 1 1 1 1)",
    "(conv2d 2 2 4 4 6 5 3 3 2 1 1 1 1 1)",
    "(epilogue relu (epilogue add (epilogue bias (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1))))",
    "(conv2d 1 8 1 1 4 4 3 3 1 1 1 1 1 1)",
    "(epilogue bias (linear 2 12 8))",
    "(matmul 2 4 6 8)",
    "(max_pool 1 8 6 6 3 3 2 2 1 1)",
    "(avg_pool 1 8 4 4 2 2 2 2 0 0)",
    "(row_mean 6 16 1)",
    "(row_max 4 8 2)",
    "(row_exp_sum 4 8 1)",
    "(row_softmax 4 8 2)",
    "(row_norm 4 8 1e-05)",
    "(channel_scale 2 8 9)",
    "(map relu 24)",
    "(zip + 24)",
    "(stretch * 2 4 3 4 15 2)",
    "(recurrence 4 6)",
};

struct Space {
    EGraph graph;
    std::shared_ptr<NestAnalysis> facts;
    ClassId root = 0;
    Term nest;
};

std::unique_ptr<Space> saturate(const char* statement, std::initializer_list<const char*> files, bool strict) {
    auto s = std::make_unique<Space>();
    s->facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{strict});
    s->graph.attach(s->facts);
    s->nest = nest_of(statement_of(parse_term(statement)));
    s->root = s->graph.add(s->nest);
    std::vector<Rewrite> rules;
    for (const char* file : files) {
        RuleBook book = load_rules(std::filesystem::path(LOOPEGG_RULES) / file, {.judge = false, .deep = false});
        for (const Rule* r : book.rules())
            if (r->arrow != Arrow::neural && r->set != "axes")
                for (Rewrite& w : bind_rule(*r, {s->facts, {}})) rules.push_back(std::move(w));
    }
    Runner runner(s->graph, rules);
    RunOptions options;
    options.limits.iterations = 7;
    options.limits.nodes = 12000;
    runner.run(options);
    return s;
}

// What is wrong with a term of the class, or nothing.
std::string wrong(const Space& s, const Term& term, bool run, const JudgeOptions& judge) {
    NestParts parts = nest_parts(term);
    Statement statement = statement_of(parts.statement);
    try {
        resolve(term);
    } catch (const UserError& e) {
        std::string why = e.what();
        // Tiles that are no product of loops are not staged: resolve says so, and nobody samples on.
        if (why.find("cannot be told from") != std::string::npos || why.find("touch different tiles") != std::string::npos) return "skip";
        return why;
    }
    const ScheduleFact& fact = s.facts->schedule_of(parts.schedule);
    if (!fact.broken.empty()) return "the analysis calls it " + fact.broken;
    if (!domain_of_parts(statement, fact.parts).whole()) return "the analysis finds another domain";
    if (auto why = isl_judge(statement, parts.schedule, judge)) return "isl: it " + *why;
    if (run) {
        Buffers buffers = judge.strict_fp ? random_buffers(statement, 5) : whole_number_buffers(statement, 5);
        std::vector<float> out = interpret(term, buffers), expected = reference(statement, {}, buffers);
        if (statement.value.op().text() == "exp" && !judge.strict_fp) return "";   // sums of exponentials are no whole numbers
        if (out != expected) return "it computes something else";
    }
    return "";
}

// The shortest of the class's terms that is wrong, to be read by a person.
std::string smallest_wrong(Space& s, TermSpace& space, const Term& found, const std::string& why, const JudgeOptions& judge, std::mt19937_64& random) {
    Term best = found;
    std::string words = why;
    for (int i = 0; i < 300; ++i) {
        Term t = space.sample(s.root, random);
        if (to_string(t).size() >= to_string(best).size()) continue;
        if (std::string w = wrong(s, t, true, judge); !w.empty() && w != "skip") best = t, words = w;
    }
    return words + ": " + to_string(bare(best));
}

void check_terms(std::initializer_list<const char*> files, std::size_t terms, std::size_t runs, JudgeOptions judge) {
    std::size_t each = terms / std::size(statements), run_each = runs / std::size(statements), skipped = 0, checked = 0, ran = 0;
    for (const char* statement : statements) {
        auto s = saturate(statement, files, judge.strict_fp);
        TermSpace space(s->graph);
        std::mt19937_64 random(17);
        for (std::size_t i = 0; i < each; ++i) {
            Term term = space.sample(s->root, random);
            std::string why = wrong(*s, term, i < run_each, judge);
            ++checked;
            if (why == "skip") ++skipped;
            else ran += i < run_each;
            if (why.empty() || why == "skip") continue;
            FAIL(smallest_wrong(*s, space, term, why, judge, random));
        }
    }
    std::printf("terms: %zu judged by isl, %zu interpreted, %zu with a stage that cannot be\n", checked - skipped, ran, skipped);
    CHECK(skipped * 4 < checked);
}

}  // namespace

TEST_CASE("random schedules for processors: analysis, isl and interpreter agree", "[rules]") {
    check_terms({"structure.rules", "tune-cpu.rules"}, deep() ? 60000 : 540, deep() ? 6000 : 180, {});
}

TEST_CASE("random schedules for graphics processors: analysis, isl and interpreter agree", "[rules]") {
    check_terms({"tune-gpu.rules"}, deep() ? 40000 : 360, deep() ? 4000 : 90, {});
}

TEST_CASE("strict schedules are bit-identical to the naive order on random floats", "[rules]") {
    check_terms({"structure.rules", "tune-cpu.rules"}, deep() ? 18000 : 270, deep() ? 18000 : 270, {.strict_fp = true});
}
