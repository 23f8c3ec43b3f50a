// Any rule that has a name can be typed in a plan, and does what a search does with it.
#include <optional>

#include <catch2/catch.hpp>

#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "graph/flops.hpp"
#include "graph/zoo/zoo.hpp"
#include "nest/domain/domain.hpp"
#include "rewrite/plan_rules.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

const std::filesystem::path rules_folder = LOOPEGG_RULES;
const char* const site = "layer1.0.conv1";

const Graph& resnet() {
    static const Graph graph = zoo_graph("resnet34-cifar10");
    return graph;
}

Plan plan(const std::string& apply) { return read_plan(make_source("plan.json", R"({"steps": [{"site": "layer1.0.conv1", "apply": [)" + apply + "]}]}")); }
Graph applied(const std::string& apply, const std::filesystem::path& file = rules_folder / "discover.rules") {
    const PlanRules rules = plan_rules(file);
    return apply_plan(resnet(), plan(apply), &rules);
}
std::string refusal(const std::string& apply) {
    try {
        applied(apply);
        return "accepted";
    } catch (const UserError& e) {
        return e.what();
    }
}
double left(const Graph& g) { return static_cast<double>(macs(*g.find(site))) / static_cast<double>(macs(*resnet().find(site))); }

const std::string rows = R"x({"rule": "bottleneck-axis", "with": {"?a": "(rem oh 2)", "?k": 2}, "restore": "repeat"},)x";
const std::string cut = R"({"rule": "cut-domain", "with": {"?a": "co", "?k": 32}},)";

}  // namespace

TEST_CASE("rules that plans know by their names alone", "[unit][rewrite]") {
    const Graph depthwise = applied(R"({"rule": "group-all-axes", "with": {"?a": "co", "?b": "ci"}})");
    CHECK(depthwise.find(site)->integer("groups") == 64);
    // S3 by the rules for parts, and by the rule for nests with the part told.
    const Graph parts = applied(cut + R"({"rule": "group-first-part", "with": {"?a": "co", "?b": "ci", "?g": 2}},
                                         {"rule": "group-second-part", "with": {"?a": "co", "?b": "ci", "?g": 4}})");
    CHECK(left(parts) == 3.0 / 8);
    CHECK(parts == applied(cut + R"({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 2}, "part": 0},
                                    {"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 4}, "part": 1})"));
    const Graph again = applied(rows + R"({"rule": "group-restored", "with": {"?a": "co", "?b": "ci", "?g": 4}})");
    CHECK(left(again) == 1.0 / 8);
    CHECK(again.find(site)->domain.restore == Restore::repeat);
}

TEST_CASE("every neural rule over nests that ships can be typed, and exact ones leave the network as it is", "[unit][rewrite]") {
    const RuleBook book = load_rules(rules_folder / "discover.rules", {.judge = false, .deep = false});
    for (const Rule* rule : book.rules()) {
        if (rule->set == "networks") continue;  // they span sites
        const bool restored = rule->left.front().term.is("restore", 2), parts = rule->name.find("-part") != std::string::npos;
        const std::string before = restored ? rows : parts ? cut : "";
        const bool grouped = rule->name.starts_with("group");
        const std::string axes = rule->name == "bottleneck-output" ? R"("?a": "co", "?k": 2)"
                                 : grouped                         ? R"("?a": "co", "?b": "ci", "?g": 2)"
                                 : rule->arrow == Arrow::neural    ? R"("?a": "ci", "?k": 2)"
                                                                   : R"("?a": "co", "?k": 2)";
        const std::string restore = rule->name == "bottleneck-output" ? R"(, "restore": "zero")" : "";
        INFO(rule->name);
        const Graph made = applied(before + R"({"rule": ")" + rule->name + R"(", "with": {)" + axes + "}" + restore + "}");
        if (rule->arrow == Arrow::neural)
            CHECK(left(made) < (restored ? 0.5 : 1.0));
        else if (rule->name != "cut-domain")
            CHECK(made == resnet());
    }
    for (const char* exact : {"unroll-loop", "vectorize-loop", "fuse-activation", "block-shared"})
        CHECK(applied(R"({"rule": ")" + std::string(exact) + R"(", "with": {}})") == resnet());
}

TEST_CASE("what a plan does by itself is what the shipped rule of that name does", "[unit][rewrite]") {
    const PlanRules rules = plan_rules(rules_folder / "discover.rules");
    const Graph mobile = zoo_graph("mobilenet_v2"), bert = zoo_graph("bert-tiny");
    struct Case {
        const Graph& graph;
        std::string site, rule, with, restore = "";
    };
    std::vector<Case> cases;
    for (const char* at : {"conv1", "layer1.0.conv1", "layer2.0.conv1", "layer2.0.downsample.0", "layer4.2.conv2"}) {
        for (const char* blocks : {"2", "4", "8"})
            for (const char* axis : {"co", "(quo oh (/ (extent oh) 8))", "(rem co 16)"})
                cases.push_back({resnet(), at, "group-axes", R"("?a": ")" + std::string(axis) + R"(", "?b": "ci", "?g": )" + blocks});
        for (const char* axis : {"ci", "kh", "(rem ci 2)", "(quo ci 16)"})
            for (const char* factor : {"2", "3", "4"})
                cases.push_back({resnet(), at, "bottleneck-axis", R"("?a": ")" + std::string(axis) + R"(", "?k": )" + factor});
        for (const char* how : {"repeat", "zero"}) cases.push_back({resnet(), at, "bottleneck-output", R"("?a": "co", "?k": 4)", how});
    }
    cases.push_back({mobile, "features.2.conv.0.0", "group-axes", R"("?a": "co", "?b": "ci", "?g": 4)"});
    cases.push_back({bert, "encoder.0.attention.query", "bottleneck-axis", R"("?a": "ci", "?k": 2)"});
    int made_by_both = 0;
    for (const Case& c : cases) {
        const Node* node = c.graph.find(c.site);
        if (!node) continue;
        const std::string step =
            R"({"rule": ")" + c.rule + R"(", "with": {)" + c.with + "}" + (c.restore.empty() ? "" : R"(, "restore": ")" + c.restore + "\"") + "}";
        const Plan typed = read_plan(make_source("plan.json", R"({"steps": [{"site": ")" + c.site + R"(", "apply": [)" + step + "]}]}"));
        INFO(c.site << " " << step);
        std::optional<Graph> by_itself, by_rule;
        try {
            by_itself = apply_plan(c.graph, typed);
        } catch (const UserError&) {
        }
        try {
            Graph graph = c.graph;
            set_domain(*graph.find(c.site), domain_of(rules.apply(typed.steps[0].apply[0], nest_of(*node))));
            complete(graph);
            by_rule = apply_plan(graph, {});
        } catch (const UserError&) {
        }
        CHECK(by_itself.has_value() == by_rule.has_value());
        if (!by_itself || !by_rule) continue;
        CHECK(*by_itself == *by_rule);
        ++made_by_both;
    }
    CHECK(made_by_both > 40);
}

TEST_CASE("a rule of one's own can be typed, with values that its list does not offer", "[unit][rewrite]") {
    ScratchFile file(".rules");
    write_scratch(file.path(), R"((language nest)
(ruleset mine (rule keep-first (nest ?n (at ?a ?s)) ~> (nest ?n (at (span ?a 0 ?w) ?s)) :for ?w (1 2) :when (reduction ?a) (< ?w (extent ?a)) (capacity)))
)");
    CHECK(left(applied(R"({"rule": "keep-first", "with": {"?a": "ci", "?w": 48}})", file.path())) == 0.75);
    CHECK_THROWS_WITH(applied(R"({"rule": "keep-first", "with": {"?a": "ci", "?w": 64}})", file.path()), Catch::Contains("(< ?w (extent ?a)) does not hold"));
}

TEST_CASE("what a rule by name refuses is said in the words of its guard", "[unit][rewrite]") {
    CHECK_THAT(refusal(R"({"rule": "group-all-axes", "with": {"?a": "co", "?b": "ow"}})"), Catch::Contains("is no reduction") && Catch::Contains(site));
    CHECK_THAT(refusal(R"({"rule": "group-all-axes", "with": {"?a": "co"}})"), Catch::Contains("group-all-axes needs ?b"));
    CHECK_THAT(refusal(R"({"rule": "group-first-part", "with": {"?a": "co", "?b": "ci", "?g": 2}})"), Catch::Contains("cut in two"));
    CHECK_THAT(refusal(R"({"rule": "group-restored", "with": {"?a": "co", "?b": "ci", "?g": 2}})"), Catch::Contains("outputs are restored"));
    CHECK_THAT(refusal(cut + R"({"rule": "group-first-part", "with": {"?a": "co", "?b": "ci", "?g": 7}})"),
               Catch::Contains("(divides ?g (extent ?a)) does not hold"));
    CHECK_THAT(refusal(R"({"rule": "group-al-axes", "with": {}})"), Catch::Contains("did you mean 'group-all-axes'"));
}
