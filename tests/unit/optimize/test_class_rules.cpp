// Which rules a class of architecture is searched with.
#include <unistd.h>

#include <filesystem>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "graph/load.hpp"
#include "optimize/class_rules.hpp"
#include "optimize/optimize.hpp"
#include "optimize/paid_sequences.hpp"
#include "optimize/passes.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

RuleBook discover_rules() {
    LoadOptions options;
    static const RuleBook book = load_rules(rules_file("discover"), options);
    return book;
}

std::vector<std::string> names(const ClassRules& rules, const Phase& phase) {
    std::vector<std::string> out;
    for (const Rule* r : rules.book.rules_of(phase)) out.push_back(r->name);
    return out;
}

bool has(const std::vector<std::string>& all, const std::string& one) { return std::find(all.begin(), all.end(), one) != all.end(); }

std::string reason(const ClassRules& rules, const std::string& rule) {
    for (const PrunedRule& p : rules.pruned)
        if (p.rule == rule) return p.why;
    return "";
}

}  // namespace

TEST_CASE("a set serves the classes of its tags", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    const ClassRules transformer = rules_for_class(book, phase, "transformer", {}), residual = rules_for_class(book, phase, "residual", {}),
                     all = rules_for_class(book, phase, "all", {});
    CHECK(transformer.searches);
    CHECK(has(names(transformer, phase), "group-axes"));
    CHECK_FALSE(has(names(transformer, phase), "group-restored"));
    CHECK(reason(transformer, "group-restored").find("is for plain, residual") != std::string::npos);
    CHECK(residual.searches);
    CHECK(residual.pruned.empty());
    CHECK(names(residual, phase) == names(all, phase));
}

TEST_CASE("rules that never fired or never paid are left out, with the budget that they had", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    CountTable counts;
    counts["mobile"].runs = enough_runs;
    counts["mobile"].rules = {{"group-axes", {50, 60, 4}}, {"bottleneck-axis", {20, 40, 0}}, {"join-domain", {0, 0, 0}}};
    const ClassRules mobile = rules_for_class(book, phase, "mobile", counts);
    CHECK(has(names(mobile, phase), "group-axes"));
    CHECK(has(names(mobile, phase), "split-loop"));  // nobody counted it
    CHECK(reason(mobile, "join-domain") == "it never fired in 2 counted runs");
    CHECK(reason(mobile, "bottleneck-axis") == "it fired 20 times in 2 counted runs, and no returned network has a step of it");
    CHECK(mobile.asked.at("group-axes") == Approx(30));
    CHECK_FALSE(mobile.asked.contains("bottleneck-axis"));
    CHECK(mobile.asked_by_all == Approx(50));
    counts["mobile"].runs = enough_runs - 1;
    CHECK(rules_for_class(book, phase, "mobile", counts).pruned.empty());
    CHECK(rules_for_class(book, phase, "mobile", counts).asked.empty());
    CHECK(rules_for_class(book, phase, "dense", counts).pruned.empty());
    CHECK(rules_for_class(book, phase, "all", counts).pruned.empty());
}

TEST_CASE("counts belong to the words of a rule, not to its name", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    CountTable counts;
    counts["mobile"].runs = enough_runs;
    counts["mobile"].rules = {{count_key(*book.find_rule("bottleneck-axis")), {20, 40, 0}}, {"group-axes of-other-words", {20, 40, 0}}};
    counts["mobile"].sequences = {{"bottleneck-output ?k=2 ?h=zero", enough_runs}};
    CHECK(counts_from_json(to_json(counts)) == counts);
    const ClassRules mobile = rules_for_class(book, phase, "mobile", counts);
    CHECK_FALSE(has(names(mobile, phase), "bottleneck-axis"));
    CHECK(has(names(mobile, phase), "group-axes"));
    CHECK(mobile.book.find_rule("group-axes")->choices.front().values.size() == 4);  // none of its values is erased
    for (const auto& [kind, counted] : shipped_counts())
        for (const Rule* rule : book.rules_of(phase)) CHECK((counted.find(*rule) == nullptr) == !counted.rules.contains(count_key(*rule)));
}

TEST_CASE("an exact rule that only makes way for others stays with them", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    CountTable counts;
    counts["mobile"].runs = enough_runs;
    counts["mobile"].rules = {{"cut-domain", {50, 0, 0}}, {"split-loop", {50, 0, 0}}, {"group-axes", {50, 60, 4}}};
    CHECK(has(names(rules_for_class(book, phase, "mobile", counts), phase), "cut-domain"));  // somebody looks for the cuts that it makes
    CHECK_FALSE(has(names(rules_for_class(book, phase, "mobile", counts), phase), "split-loop"));
    for (const char* part : {"group-first-part", "group-second-part", "bottleneck-first-part", "bottleneck-second-part"})
        counts["mobile"].rules[part] = {5, 5, 0};
    CHECK_FALSE(has(names(rules_for_class(book, phase, "mobile", counts), phase), "cut-domain"));
}

TEST_CASE("sequences that too few runs returned are not searched for, nor what stands in no other", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    CountTable counts;
    ClassCounts& c = counts["mobile"];
    c.runs = 3;
    c.rules = {{"group-axes", {50, 60, 4}}, {"bottleneck-axis", {20, 40, 3}}, {"group-all-axes", {9, 9, 1}}, {"group-first-part", {9, 9, 2}}};
    c.rules["group-axes"].paid = 40;
    c.sequences = {{"group-axes ?g=4", 2}, {"bottleneck-axis ?k=2, group-axes ?g=8", 3}, {"group-axes ?g=16", 1}, {"group-all-axes", 1}};
    const ClassRules mobile = rules_for_class(book, phase, "mobile", counts);
    CHECK(mobile.paid == std::set<std::string>{"bottleneck-axis ?k=2, group-axes ?g=8", "group-axes ?g=4"});
    std::string left;
    for (const char* name : {"group-axes", "bottleneck-axis"})
        for (const Term& value : mobile.book.find_rule(name)->choices.front().values) left += to_string(value) + " ";
    CHECK(left == "4 8 2 ");
    CHECK(reason(mobile, "group-axes ?g=16") == "fewer than 2 of 3 counted runs returned a network with it");
    CHECK(reason(mobile, "group-first-part") == "only 2 of 46 neural steps of the networks that 3 counted runs returned are its own");
    CHECK(rules_for_class(book, phase, "all", counts).paid.empty());
    ++c.runs;  // two are only half of them now
    CHECK(rules_for_class(book, phase, "mobile", counts).paid == std::set<std::string>{"bottleneck-axis ?k=2, group-axes ?g=8"});

    const Variant v{
        0,    {},
        {},   0,
        0,    {{"swap-loops", false, {}, {}, {}}, {"group-axes", true, {{"?a", "co"}, {"?g", "8"}}, {}, {}}, {"bottleneck-axis", true, {{"?k", "2"}}, {}, {}}},
        {},   "",
        false};
    CHECK(neural_sequence(book, v) == "bottleneck-axis ?k=2, group-axes ?g=8");
    Variant other = v;
    other.steps.pop_back();
    CHECK(searched_for(mobile, v));
    CHECK_FALSE(searched_for(mobile, other));
    other.steps.push_back({"bottleneck-output", true, {{"?k", "2"}, {"?h", "zero"}}, {}, {}});  // nobody counted it
    CHECK(searched_for(mobile, other));
    CHECK(mobile.book.find_rule("bottleneck-output")->choices.front().values.size() == 2);
}

TEST_CASE("the class is the detector's unless the user says another", "[unit][optimize]") {
    const Graph bert = load_graph("zoo:bert-tiny");
    CHECK(class_name("auto", bert) == "transformer");
    CHECK(class_name("mobile", bert) == "mobile");
    CHECK(class_name("all", bert) == "all");
    CHECK_THROWS_WITH(class_name("mobil", bert), Catch::Contains("did you mean 'mobile'"));
}

TEST_CASE("counts are kept in the store, a network once", "[unit][optimize]") {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / ("loopegg-counts-" + std::to_string(::getpid()) + ".sqlite");
    std::filesystem::remove(file);
    CHECK(stored_counts(file).empty());
    store_counts(file, "residual", "a", {1, {{"group-axes", {5, 3, 1}}}, {{"group-axes ?g=2", 1}}});
    store_counts(file, "residual", "a", {1, {{"group-axes", {6, 3, 2}}}, {{"group-axes ?g=4", 1}}});
    store_counts(file, "residual", "b", {1, {{"group-axes", {10, 4, 0}}, {"swap-loops", {1, 0, 0}}}, {{"group-axes ?g=4", 1}}});
    const CountTable table = stored_counts(file);
    CHECK(table.at("residual").runs == 2);
    CHECK(table.at("residual").rules.at("group-axes") == RuleCount{16, 7, 2});
    CHECK(table.at("residual").sequences == std::map<std::string, std::int64_t>{{"group-axes ?g=4", 2}});
    CHECK(counts_from_json(to_json(table)).at("residual") == table.at("residual"));
    std::filesystem::remove(file);
}

TEST_CASE("passes: all rules at once, or one set after another", "[unit][optimize]") {
    CHECK(pass_order("AS-6") == PassOrder{false, 6});
    CHECK(pass_order("PO-2") == PassOrder{true, 2});
    for (const char* wrong : {"AS", "AS-0", "PO--1", "XX-2", "AS-2x", ""}) CHECK_FALSE(pass_order(wrong));
    auto grown = [](const PassOrder& order) {
        EGraph graph;
        graph.add(parse_term("(f a)"));
        graph.rebuild();
        const std::vector<std::vector<Rewrite>> sets{
            {rewrite("f-g", "(f ?x)", "(g ?x)")}, {rewrite("g-h", "(g ?x)", "(h ?x)")}, {rewrite("h-k", "(h ?x)", "(k ?x)")}};
        const RunReport report = run_passes(graph, sets, order, {});
        return std::pair(graph.node_count(), report.stop);
    };
    CHECK(grown({false, 1}) == std::pair<std::size_t, StopReason>{3, StopReason::iterations});  // one step of the chain
    CHECK(grown({true, 1}) == std::pair<std::size_t, StopReason>{5, StopReason::iterations});   // each set sees what the one before made
    CHECK(grown({true, 5}) == std::pair<std::size_t, StopReason>{5, StopReason::saturated});
    CHECK(grown({false, 9}).second == StopReason::saturated);
}
