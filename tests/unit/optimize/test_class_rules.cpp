// Which rules a class of architecture is searched with.
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "graph/architecture_hash.hpp"
#include "graph/load.hpp"
#include "optimize/class_rules.hpp"
#include "optimize/optimize.hpp"
#include "optimize/paid_sequences.hpp"
#include "optimize/passes.hpp"
#include "optimize/stages.hpp"
#include "rules/load.hpp"
#include "store/database.hpp"

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

std::string key(const char* rule) { return count_key(*discover_rules().find_rule(rule)); }

std::string reason(const ClassRules& rules, const std::string& rule) {
    for (const PrunedRule& p : rules.pruned)
        if (p.rule == rule) return p.why;
    return "";
}

// An empty store that goes when the test ends.
struct TemporaryStore {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / ("loopegg-counts-" + std::to_string(::getpid()) + ".sqlite");
    TemporaryStore() { clear(); }
    ~TemporaryStore() { clear(); }
    void clear() const {
        for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + end);
    }
};

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
    counts["mobile"].rules = {{key("group-axes"), {{50, 60, 4}, 2}}, {key("bottleneck-axis"), {{20, 40, 0}, 2}}, {key("join-domain"), {{0, 0, 0}, 2}}};
    const ClassRules mobile = rules_for_class(book, phase, "mobile", counts);
    CHECK(has(names(mobile, phase), "group-axes"));
    CHECK(has(names(mobile, phase), "split-loop"));  // nobody counted it
    CHECK(reason(mobile, "join-domain") == "it never fired in 2 counted networks");
    CHECK(reason(mobile, "bottleneck-axis") == "it fired 20 times in 2 counted networks, and none was returned with a step of it");
    CHECK(mobile.asked.at("group-axes") == Approx(30));
    CHECK_FALSE(mobile.asked.contains("bottleneck-axis"));
    CHECK(mobile.asked_by_all == Approx(50));
    for (auto& [rule, count] : counts["mobile"].rules) count.networks = enough_networks - 1;
    CHECK(rules_for_class(book, phase, "mobile", counts).pruned.empty());
    CHECK(rules_for_class(book, phase, "mobile", counts).asked.empty());
    CHECK(rules_for_class(book, phase, "dense", counts).pruned.empty());
    CHECK(rules_for_class(book, phase, "all", counts).pruned.empty());
}

TEST_CASE("counts belong to the words of a rule, not to its name", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    CountTable counts;
    counts["mobile"].rules = {
        {key("bottleneck-axis"), {{20, 40, 0}, 2}}, {"group-axes of-other-words", {{20, 40, 0}, 2}}, {"group-all-axes", {{20, 40, 0}, 2}}};
    counts["mobile"].sequences = {{"bottleneck-output ?k=2 ?h=zero", 2}};
    const ClassRules mobile = rules_for_class(book, phase, "mobile", counts);
    CHECK_FALSE(has(names(mobile, phase), "bottleneck-axis"));
    CHECK(has(names(mobile, phase), "group-axes"));
    CHECK(has(names(mobile, phase), "group-all-axes"));                              // nobody knows with which words it was counted
    CHECK(mobile.book.find_rule("group-axes")->choices.front().values.size() == 4);  // none of its values is erased
}

TEST_CASE("a rule that a user changed has no counts, whatever was counted with its former words", "[unit][optimize]") {
    RuleBook book = discover_rules();
    for (RuleSet& set : book.sets)
        for (Rule& rule : set.rules)
            if (rule.name == "group-restored") rule.text += " ";
    const ClassRules before = rules_for_class(discover_rules(), *book.find_phase("discover"), "residual", counts_without({}, shipped_counts())),
                     after = rules_for_class(book, *book.find_phase("discover"), "residual", counts_without({}, shipped_counts()));
    CHECK_FALSE(reason(before, "group-restored").empty());
    CHECK(reason(after, "group-restored").empty());
    CHECK(after.uncounted == std::set<std::string>{"group-restored"});
}

TEST_CASE("the shipped counts are of the shipped rules, and of several networks of each class", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    for (const auto& [kind, networks] : shipped_counts()) {
        INFO(kind);
        CHECK(networks.size() > enough_networks);  // enough are left when one is left out
        for (const auto& [hash, counts] : networks) {
            INFO(counts.name);
            for (const Rule* rule : book.rules_of(*book.find_phase("discover"))) CHECK(counts.rules.contains(count_key(*rule)));
        }
    }
}

TEST_CASE("a network's own runs never change its rules, and those of another network do", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    const Hash128 mine = hash_of("mine"), other = hash_of("other"), third = hash_of("third");
    CountedNetworks counted;
    counted["mobile"][other.hex()] = {"other", {{key("group-axes"), {9, 9, 9}}, {key("bottleneck-axis"), {9, 9, 0}}}, {"group-axes ?g=4"}};
    counted["mobile"][third.hex()] = {"third", {{key("group-axes"), {9, 9, 9}}, {key("bottleneck-axis"), {9, 9, 0}}}, {"group-axes ?g=4"}};
    const auto rules_of = [&](const Hash128& network) { return rules_for_class(book, phase, "mobile", counts_without(network, counted)); };
    const std::vector<std::string> before = names(rules_of(mine), phase);
    CHECK_FALSE(has(before, "bottleneck-axis"));
    counted["mobile"][mine.hex()] = {"mine", {{key("group-axes"), {9, 9, 0}}, {key("bottleneck-axis"), {9, 9, 9}}}, {"bottleneck-axis ?k=2"}};
    counted["residual"][mine.hex()] = counted["mobile"][mine.hex()];
    CHECK(names(rules_of(mine), phase) == before);
    CHECK(counts_without(mine, counted).at("mobile").rules.at(key("group-axes")) == RuleSum{{18, 18, 18}, 2});
    CHECK_FALSE(counts_without(mine, counted).contains("residual"));
    CHECK(has(names(rules_of(other), phase), "bottleneck-axis"));  // it paid for `mine`
}

TEST_CASE("residual networks keep the rules and the values that S1, S2 and S3 need", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    const auto step = [](const char* rule, const char* groups) { return DerivationStep{rule, true, {{"?g", parse_term(groups)}}, {}, {}}; };
    const std::vector<std::vector<DerivationStep>> sequences{
        {{"split-loop", false, {}, {}, {}}, step("group-axes", "2")},
        {{"cut-domain", false, {}, {}, {}}, step("group-second-part", "2")},
        {{"cut-domain", false, {}, {}, {}}, step("group-first-part", "2"), step("group-second-part", "4")}};
    CountedNetworks counted = shipped_counts();
    counted["residual"]["no network at all"] = {};
    for (const auto& [left_out, counts] : counted["residual"]) {
        INFO("without " << counts.name);
        CountTable table;
        for (const auto& [hash, other] : counted["residual"])
            if (hash != left_out) table["residual"].add(other);
        const ClassRules residual = rules_for_class(book, phase, "residual", table, shipped_keep("residual"));
        CHECK_FALSE(residual.pruned.empty());
        for (const std::vector<DerivationStep>& steps : sequences) {
            Variant variant;
            variant.steps = steps;
            CHECK(searched_for(residual, variant));
            for (const DerivationStep& s : steps) {
                INFO(s.rule);
                const Rule* rule = residual.book.find_rule(s.rule);
                REQUIRE(rule);
                CHECK(std::all_of(s.with.begin(), s.with.end(), [&](const auto& with) {
                    const std::vector<Term>& values = rule->choices.front().values;
                    return std::any_of(values.begin(), values.end(), [&](const Term& v) { return v == with.second; });
                }));
            }
        }
    }
}

TEST_CASE("an exact rule that only makes way for others stays with them", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    CountTable counts;
    counts["mobile"].rules = {{key("cut-domain"), {{50, 0, 0}, 2}}, {key("split-loop"), {{50, 0, 0}, 2}}, {key("group-axes"), {{50, 60, 4}, 2}}};
    CHECK(has(names(rules_for_class(book, phase, "mobile", counts), phase), "cut-domain"));  // somebody looks for the cuts that it makes
    CHECK_FALSE(has(names(rules_for_class(book, phase, "mobile", counts), phase), "split-loop"));
    for (const char* part : {"group-first-part", "group-second-part", "bottleneck-first-part", "bottleneck-second-part"})
        counts["mobile"].rules[key(part)] = {{5, 5, 0}, 2};
    CHECK_FALSE(has(names(rules_for_class(book, phase, "mobile", counts), phase), "cut-domain"));
}

TEST_CASE("sequences that too few networks were returned with are not searched for, nor what stands in no other", "[unit][optimize]") {
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    CountTable counts;
    ClassCounts& c = counts["mobile"];
    c.rules = {{key("group-axes"), {{50, 60, 40}, 3}},
               {key("bottleneck-axis"), {{20, 40, 3}, 3}},
               {key("group-all-axes"), {{9, 9, 1}, 3}},
               {key("group-first-part"), {{9, 9, 2}, 3}}};
    c.sequences = {{"group-axes ?g=4", 2}, {"bottleneck-axis ?k=2, group-axes ?g=8", 3}, {"group-axes ?g=16", 1}, {"group-all-axes", 1}};
    const ClassRules mobile = rules_for_class(book, phase, "mobile", counts);
    CHECK(mobile.paid == std::set<std::string>{"bottleneck-axis ?k=2, group-axes ?g=8", "group-axes ?g=4"});
    std::string left;
    for (const char* name : {"group-axes", "bottleneck-axis"})
        for (const Term& value : mobile.book.find_rule(name)->choices.front().values) left += to_string(value) + " ";
    CHECK(left == "4 8 2 ");
    CHECK(reason(mobile, "group-axes ?g=16") == "fewer than 2 of 3 counted networks were returned with it");
    CHECK(reason(mobile, "group-first-part") == "only 2 of 46 neural steps that 3 counted networks were returned with are its own");
    CHECK(rules_for_class(book, phase, "all", counts).paid.empty());
    for (auto& [rule, count] : c.rules) ++count.networks;  // two are only half of them now
    CHECK(rules_for_class(book, phase, "mobile", counts).paid == std::set<std::string>{"bottleneck-axis ?k=2, group-axes ?g=8"});

    Variant v;
    v.steps = {{"swap-loops", false, {}, {}, {}},
               {"group-axes", true, {{"?a", parse_term("co")}, {"?g", parse_term("8")}}, {}, {}},
               {"bottleneck-axis", true, {{"?k", parse_term("2")}}, {}, {}}};
    CHECK(neural_sequence(book, v) == "bottleneck-axis ?k=2, group-axes ?g=8");
    Variant other = v;
    other.steps.pop_back();
    CHECK(searched_for(mobile, v));
    CHECK_FALSE(searched_for(mobile, other));
    other.steps.push_back({"bottleneck-output", true, {{"?k", parse_term("2")}, {"?h", parse_term("zero")}}, {}, {}});  // nobody counted it
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
    const TemporaryStore store;
    CHECK(stored_counts(store.file).empty());
    const Hash128 a = hash_of("a"), b = hash_of("b");
    store_counts(store.file, "residual", a, {"", {{"group-axes 1", {5, 3, 1}}, {"swap-loops 0", {1, 0, 0}}}, {"group-axes ?g=2"}});
    store_counts(store.file, "residual", a, {"", {{"group-axes 1", {6, 3, 2}}}, {"group-axes ?g=4"}});
    store_counts(store.file, "residual", b, {"", {{"group-axes 1", {10, 4, 0}}, {"swap-loops 2", {1, 0, 0}}}, {"group-axes ?g=4"}});
    const CountedNetworks counted = stored_counts(store.file);
    CHECK(counts_from_json(to_json(counted)) == counted);
    const ClassCounts sum = counts_without({}, counted).at("residual");
    CHECK(sum.rules == std::map<std::string, RuleSum>{{"group-axes 1", {{16, 7, 2}, 2}}, {"swap-loops 2", {{1, 0, 0}, 1}}});
    CHECK(sum.sequences == std::map<std::string, std::int64_t>{{"group-axes ?g=4", 2}});
    CHECK(counts_without(a, counted).at("residual").rules.at("group-axes 1") == RuleSum{{10, 4, 0}, 1});
}

TEST_CASE("what an earlier loopegg stored under a network's name is not counted", "[unit][optimize]") {
    const TemporaryStore store;
    {
        Database db(store.file, "the store");
        StoreQuery(db, "INSERT INTO rule_counts(class, network, rule, fired, asked, paid) VALUES('residual', 'resnet18', 'group-axes 1', 5, 3, 1)").done();
        StoreQuery(db, "INSERT INTO sequence_counts(class, network, sequence) VALUES('residual', 'resnet18', 'group-axes ?g=2')").done();
    }
    CHECK(stored_counts(store.file).empty());
}

TEST_CASE("a network that is shipped and stored counts once, as it is stored", "[unit][optimize]") {
    const TemporaryStore store;
    const CountedNetworks shipped = shipped_counts();
    const auto& [kind, networks] = *shipped.begin();
    REQUIRE_FALSE(networks.empty());
    std::string hex = networks.begin()->first;
    const Hash128 network{std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)};
    const std::string rule = networks.begin()->second.rules.begin()->first;
    const RuleSum before = counts_without({}, shipped).at(kind).rules.at(rule);
    store_counts(store.file, kind, network, {"", {{rule, {1000000, 0, 0}}}, {}});
    const RuleSum after = known_counts(store.file, {}).at(kind).rules.at(rule);
    CHECK(after.networks == before.networks);
    CHECK(after.fired == before.fired - networks.begin()->second.rules.at(rule).fired + 1000000);
    CHECK(known_counts(store.file, network) == counts_without(network, shipped));
}

TEST_CASE("a second run of a network uses the rules of its first, also under another name and for another batch", "[unit][optimize]") {
    const TemporaryStore store;
    const RuleBook book = discover_rules();
    const Phase& phase = *book.find_phase("discover");
    const auto rules_of = [&](const Graph& graph) {
        return rules_for_class(book, phase, class_name("auto", graph), known_counts(store.file, architecture_hash(graph)),
                               shipped_keep(class_name("auto", graph)));
    };
    const auto as_text = [&](const ClassRules& rules) {
        std::string text;
        for (const std::string& name : names(rules, phase)) text += fmt::format("{} {}\n", name, rules.asked.contains(name) ? rules.asked.at(name) : -1);
        for (const PrunedRule& p : rules.pruned) text += p.rule + ": " + p.why + "\n";
        return text;
    };
    const auto run = [&](Graph graph, bool whole = true) {  // a run with every rule that returns a network with a step of bottleneck-restored
        Input input;
        input.graph = std::move(graph);
        input.sites = sites_of(input.graph);
        Discovery found = originals_only(input.sites);
        for (const Rule* rule : book.rules_of(phase)) found.rules_fired[rule->name] = 50, found.rules_asked[rule->name] = 70;
        found.variants.push_back(found.variants.front());
        found.variants.back().steps = {{"bottleneck-restored", true, {{"?k", parse_term("3")}}, {}, {}}};
        Tuning tuning;
        tuning.best.resize(found.variants.size());
        std::vector<std::size_t> returned = original_variants(input.sites);
        for (std::size_t& variant : returned) variant = found.variants.size() - 1;
        return count_run(whole ? std::optional<StoreAddress>(store.file) : std::nullopt, rules_for_class(book, phase, "all", {}), input, found, tuning,
                         returned);
    };
    const Graph network = load_graph("zoo:resnet18");
    Graph renamed = with_batch(network, 8);
    renamed.name = "another name";
    const std::string first = as_text(rules_of(network));
    const nlohmann::json counted = run(network);
    CHECK(counted["architecture"] == architecture_hash(network).hex());
    CHECK(counted["rules"]["bottleneck-restored"]["paid"] == sites_of(network).all.size());
    CHECK(as_text(rules_of(network)) == first);
    CHECK(as_text(rules_of(renamed)) == first);
    const Graph other = load_graph("zoo:resnet34");
    const std::string before = as_text(rules_of(other));
    run(renamed);
    CHECK(as_text(rules_of(network)) == first);
    CHECK(as_text(rules_of(other)) == before);  // it is the same network, and counts once
    run(load_graph("zoo:resnext29_2x64d"), false);
    CHECK(as_text(rules_of(network)) == first);  // a run that asked about some sites alone does not count
    run(load_graph("zoo:resnext29_2x64d"));
    CHECK(as_text(rules_of(network)) != first);
}

TEST_CASE("passes: all rules at once, or one set after another", "[unit][optimize]") {
    CHECK(pass_order("together-6") == PassOrder{false, 6});
    CHECK(pass_order("in-turn-2") == PassOrder{true, 2});
    for (const char* wrong : {"together", "together-0", "in-turn--1", "other-2", "together-2x", ""}) CHECK_FALSE(pass_order(wrong));
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
