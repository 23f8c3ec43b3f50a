// The shipped rules over nests: read, checked and tried.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "rules/judged.hpp"
#include "rules/limits.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

std::string mistakes_of(const Loaded& loaded) {
    std::string text;
    for (const RuleMistake& m : loaded.mistakes) text += describe(m.what) + "\n";
    return text;
}

struct Grown {
    EGraph graph;
    std::shared_ptr<NestAnalysis> facts;
    RunReport report;
    ClassId root = 0;
};

std::unique_ptr<Grown> grow(const RuleBook& book, const std::vector<std::string>& names, const Term& nest, RunOptions options,
                            NestAnalysis::Options strict = {}) {
    auto g = std::make_unique<Grown>();
    g->facts = std::make_shared<NestAnalysis>(strict);
    g->graph.attach(g->facts);
    g->root = g->graph.add(nest);
    std::vector<const Rule*> rules;
    for (const std::string& name : names) {
        const Rule* rule = book.find_rule(name);
        REQUIRE(rule != nullptr);
        rules.push_back(rule);
    }
    Runner runner(g->graph, bind_rules(rules, {g->facts, {}}));
    g->report = runner.run(options);
    return g;
}

// What walks on from schedules, saturated from a nest as it stands.
std::vector<std::string> rules_that_vary(const RuleBook& book) {
    std::vector<std::string> names;
    for (const Rule* r : book.rules_of(*book.find_phase("vary")))
        if (r->set != "undo" && r->set != "one-core") names.push_back(r->name);
    return names;
}

}  // namespace

TEST_CASE("the shipped rules over nests are sound", "[rules]") {
    std::map<std::string, std::string> judged;  // by name
    for (const char* file : {"structure", "neural", "discover", "discover-layers", "exact", "tune-cpu", "tune-gpu", "fusion", "algorithms"}) {
        Loaded loaded = check_rules(std::filesystem::path(LOOPEGG_RULES) / (std::string(file) + ".rules"),
                                    {.judge = true, .deep = std::getenv("LOOPEGG_DEEP") != nullptr, .again = true});
        INFO(file << "\n" << mistakes_of(loaded));
        CHECK(loaded.mistakes.empty());
        CHECK(loaded.book.rule_count() > 0);
        for (const Rule* rule : loaded.book.rules()) judged[rule->name] = judged_line(*rule, rule->verdict.value());
    }
    std::string lines;
    for (const auto& [name, line] : judged) lines += line;
    std::filesystem::path list = std::filesystem::path(LOOPEGG_RULES) / "judged.txt";
    if (std::getenv("LOOPEGG_REGENERATE"))
        write_file(list, lines);
    else
        CHECK(read_file(list) == lines);
}

TEST_CASE("six loops in every order are 2^6 classes and 720 lists", "[rules]") {
    RuleBook book = load_rules(std::filesystem::path(LOOPEGG_RULES) / "structure.rules", {.judge = false, .deep = false});
    Term nest = nest_of(statement_of(parse_term("(conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1)")));
    auto g = grow(book, {"swap-loops"}, nest, {});
    CHECK(g->report.stop == StopReason::saturated);
    std::size_t schedules = 0;
    for (ClassId c : g->graph.classes()) schedules += g->facts->schedule(c) != nullptr;
    CHECK(schedules == 64);
    CHECK(ClassTerms(g->graph).count(g->root) == 720);
}

TEST_CASE("what varies schedules on the host holds a billion of a convolution in little room", "[rules]") {
    RuleBook book = load_rules(std::filesystem::path(LOOPEGG_RULES) / "tune-cpu.rules", {.judge = false, .deep = false});
    RunOptions options;
    options.limits.iterations = 16;
    options.limits.nodes = 150000;
    options.limits.seconds = 5;
    Term nest = nest_of(statement_of(parse_term("(conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1)")));
    auto g = grow(book, rules_that_vary(book), nest, options);
    double count = ClassTerms(g->graph).count(g->root);
    std::printf("vary: %zu nodes, %zu classes, %.3g schedules, %.2f s, %.0f MB\n", g->graph.node_count(), g->graph.class_count(), count, g->report.seconds,
                static_cast<double>(g->report.peak_bytes) / 1e6);
    CHECK(count >= 1e9);
    CHECK(g->graph.node_count() < 300000);
    CHECK(g->report.peak_bytes < 500'000'000);
}

TEST_CASE("extents that no tile divides are tiled with a shorter last tile", "[rules]") {
    RuleBook book = load_rules(std::filesystem::path(LOOPEGG_RULES) / "tune-cpu.rules", {.judge = false, .deep = false});
    RunOptions options;
    options.limits.iterations = 6;
    options.limits.nodes = 100000;
    Term nest = nest_of(statement_of(parse_term("(conv2d 1 1 10 4 7 7 1 1 1 1 0 0 1 1)")));
    auto g = grow(book, rules_that_vary(book), nest, options);
    for (const char* text : {"(par (quo co:10 8) (at oh:7 (at ow:7 (at ci:4 (vec (rem co:10 8) done)))))",
                             "(at co:10 (at ci:4 (at (quo oh:7 4) (at (quo ow:7 4) (at (rem oh:7 4) (vec (rem ow:7 4) done))))))"}) {
        std::size_t before = g->graph.node_count();
        ClassId c = g->graph.add(Term("nest", {nest[0], parse_term(text)}));
        CHECK(g->graph.find(c) == g->graph.find(g->root));
        CHECK(g->graph.node_count() == before);
    }
}

TEST_CASE("the phase of single sites finds the effects of the paper's sequences, which no rule names", "[rules]") {
    RuleBook book = load_rules(std::filesystem::path(LOOPEGG_RULES) / "discover.rules", {.judge = false, .deep = false});
    const Phase* phase = book.find_phase("sites");
    REQUIRE(phase != nullptr);
    std::vector<std::string> names;
    for (const Rule* r : book.rules_of(*phase)) names.push_back(r->name);
    Term nest = nest_of(statement_of(parse_term("(conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1)")));
    auto g = grow(book, names, nest, limits_of(*phase));
    std::set<ClassId> variants;
    for (const Edge& e : g->graph.edges()) variants.insert(g->graph.find(e.to));
    std::set<std::string> domains;
    for (ClassId c : variants)
        if (auto domain = g->facts->domain(c)) domains.insert(to_string(*domain));
    std::printf("sites: %zu nodes, %zu edges, %zu distinct domains, %.2f s\n", g->graph.node_count(), g->graph.edges().size(), domains.size(),
                g->report.seconds);
    auto found = [&](const std::string& words) {
        return std::any_of(domains.begin(), domains.end(), [&](const std::string& d) { return d.find(words) != std::string::npos; });
    };
    auto found_parts = [&](const std::string& first, const std::string& second) {
        return std::any_of(domains.begin(), domains.end(),
                           [&](const std::string& d) { return d.find(first) != std::string::npos && d.find(second) != std::string::npos; });
    };
    CHECK(found("ci/32%2 == oh/16%2"));                                           // S1: groups over halves of the image
    CHECK(found_parts("ci/32%2 == co/16%2", "ci/16%4 == co/8%4"));                // S3: 2 groups in one half, 4 in the other
    CHECK(found("ci%64 == co%64"));                                               // depthwise
    CHECK(std::any_of(domains.begin(), domains.end(), [](const std::string& d) {  // S2: a part dense, the rest grouped
        return d.find(" or ") != std::string::npos && d.find("ci") != std::string::npos && d.find("0 <= co%64 < 16") != std::string::npos;
    }));
}
