// Any rule that has a name can be typed in a plan, and does what a search does with it.
#include <catch2/catch.hpp>

#include "base/files.hpp"
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
    return apply_plan(resnet(), plan(apply), rules);
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
        if (rule->set == "networks" || rule->set == "widths") continue;  // they span sites
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

TEST_CASE("rules over nests are applied inside a restore, and to each part of a domain that was cut", "[unit][rewrite]") {
    const std::string group = R"({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 4})";
    const Graph inside = applied(rows + group + "}");
    CHECK(inside == applied(rows + R"({"rule": "group-restored", "with": {"?a": "co", "?b": "ci", "?g": 4}})"));
    CHECK(left(applied(cut + group + "}")) == 1.0 / 4);
    CHECK(left(applied(cut + group + R"(, "part": 1})")) == 5.0 / 8);
    // A search restricts an axis once. A plan may say more: half of the half, and another half of each part.
    const std::string half = R"({"rule": "bottleneck-output", "with": {"?k": 2}, "restore": "zero"})";
    CHECK(left(applied(half + "," + half)) == 1.0 / 4);
    CHECK(left(applied(cut + half)) == 1.0 / 2);
    CHECK_THAT(refusal(cut + R"({"rule": "cut-domain", "with": {"?a": "oh", "?k": 8}})"), Catch::Contains("cuts one part"));
    const Graph thirds = applied(cut + R"({"rule": "cut-domain", "with": {"?a": "oh", "?k": 8}, "part": 1}, )" + group + R"(, "part": 2})");
    CHECK(left(thirds) == 1.0 / 2 + 1.0 / 8 + 3.0 / 32);
    CHECK_THAT(refusal(cut + group + R"(, "part": 2})"), Catch::Contains("no part 2"));
}

TEST_CASE("a plan says how many values a rule keeps, where no factor leads to the number", "[unit][rewrite]") {
    CHECK(left(applied(R"({"rule": "bottleneck-axis", "with": {"?a": "ci", "?w": 48}})")) == 0.75);
    CHECK(left(applied(R"({"rule": "bottleneck-output", "with": {"?w": 24}, "restore": "repeat"})")) == 0.375);
    const Graph pointwise = applied(R"({"rule": "bottleneck-output", "with": {"?w": 24}, "restore": "pointwise"})");
    CHECK(pointwise.find(site)->shape[1] == 24);
    CHECK(pointwise.find("layer1.0.conv1.restore") != nullptr);
    CHECK_THAT(refusal(R"({"rule": "bottleneck-axis", "with": {"?a": "ci", "?w": 64}})"), Catch::Contains("nothing is left out"));
    CHECK_THAT(refusal(R"({"rule": "bottleneck-axis", "with": {"?a": "ci", "?w": 65}})"), Catch::Contains("a span from 0 to 65"));
    CHECK_THAT(refusal(R"({"rule": "bottleneck-axis", "with": {"?a": "ci", "?w": 0}})"), Catch::Contains("at least 1"));
    CHECK_THAT(refusal(R"({"rule": "bottleneck-axis", "with": {"?a": "ci"}})"), Catch::Contains("bottleneck-axis needs ?k"));
    CHECK_THAT(refusal(R"({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?w": 4}})"), Catch::Contains("group-axes needs ?g"));
    CHECK_THAT(refusal(R"({"rule": "bottleneck-output", "with": {"?k": 2}})"), Catch::Contains("needs ?h") && Catch::Contains("(repeat zero pointwise)"));
}

TEST_CASE("a rule is known by the file alone: a copy has another name, and a rule that was taken out is unknown", "[unit][rewrite]") {
    const auto shipped = [](const char* name) { return read_file(rules_folder / name); };
    const auto renamed = [](std::string text, const std::string& from, const std::string& to) {
        const auto at = text.find("(rule " + from + " ");
        REQUIRE(at != std::string::npos);
        return text.replace(at + 6, from.size(), to);
    };
    const ScratchFile file(".rules");
    write_scratch(file.path(), renamed(renamed(shipped("neural.rules"), "group-axes", "my-groups"), "bottleneck-output", "my-outputs"));
    const auto step = [](const std::string& rule, const char* with, const char* more = "") {
        return R"({"rule": ")" + rule + R"(", "with": {)" + with + "}" + more + "}";
    };
    const char* const blocks = R"("?a": "co", "?b": "ci", "?g": 4)";
    CHECK(applied(step("my-groups", blocks), file.path()) == applied(step("group-axes", blocks)));
    const char* const outputs = R"("?a": "co", "?w": 24)";
    for (const char* how : {R"(, "restore": "repeat")", R"(, "restore": "pointwise")"})
        CHECK(applied(step("my-outputs", outputs, how), file.path()) == applied(step("bottleneck-output", outputs, how)));
    CHECK_THROWS_WITH(applied(step("my-groups", R"("?a": "co", "?b": "ci", "?g": 7)"), file.path()), Catch::Contains("(divides ?g (extent ?a)) does not hold"));
    const std::string here = file.path().filename();
    for (const auto& [rule, gone] :
         std::vector<std::pair<std::string, std::string>>{{step("group-axes", blocks), "group-axes"},
                                                          {step("bottleneck-output", outputs, R"(, "restore": "zero")"), "bottleneck-output"},
                                                          {step("bottleneck-axis", outputs, R"(, "restore": "zero")"), "bottleneck-output"},
                                                          {cut.substr(0, cut.size() - 1), "cut-domain"}})
        CHECK_THROWS_WITH(applied(rule, file.path()),
                          Catch::Contains("plan.json:1:") && Catch::Contains("unknown rule '" + gone + "': '" + here + "' has no rule of that name"));
    // What the file says is what happens: groups of a rule that keeps fewer blocks.
    const ScratchFile changed(".rules");
    write_scratch(changed.path(), R"((language nest)
(ruleset mine (rule group-axes (nest ?n (at ?a (at ?b ?s))) ~> (nest ?n (at (span (quo ?b (/ (extent ?b) ?g)) 0 1) (at (rem ?b (/ (extent ?b) ?g)) (at ?a ?s))))
  :for ?g (2 4) :when (parallel ?a) (reduction ?b) (divides ?g (extent ?b)) (capacity)))
)");
    const Graph other = applied(step("group-axes", blocks), changed.path());
    CHECK(left(other) == 0.25);
    CHECK(other.find(site)->integer("groups") == 1);
    // Rules over several sites are rules of the file, too.
    CHECK_THROWS_WITH(applied(R"({"rule": "narrow-stream", "with": {"?w": 48}})", changed.path()), Catch::Contains("unknown rule 'narrow-stream'"));
    CHECK_THROWS_WITH(applied(step("bottleneck-output", R"("?w": 24)", R"(, "restore": "propagate")"), changed.path()),
                      Catch::Contains("unknown rule 'narrow-width'"));
}

TEST_CASE("a cut of one's own makes parts", "[unit][rewrite]") {
    const ScratchFile file(".rules");
    write_scratch(file.path(), R"((language nest)
(include ")" + (rules_folder / "neural.rules").string() +
                                   R"(")
(ruleset mine (rule halve (nest ?n (at ?a ?s)) => (nest ?n (cat (at (span ?a 0 ?k) ?s) (at (span ?a ?k (extent ?a)) ?s))) :for ?k (coarse ?a)
  :when (unsplit ?a) (parallel ?a)))
)");
    const std::string parts = R"({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 4}, "part": 1})";
    CHECK(applied(R"({"rule": "halve", "with": {"?a": "co", "?k": 32}},)" + parts, file.path()) == applied(cut + parts));
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
