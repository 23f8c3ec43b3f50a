#include <catch2/catch.hpp>

#include "../../flow/shell.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "report/page.hpp"
#include "report/run.hpp"
#include "report/words.hpp"

using namespace loopegg;

TEST_CASE("figures are put into words the same way everywhere", "[unit][report]") {
    CHECK(human_ms(4.934) == "4.93 ms");
    CHECK(human_ms(0.8123) == "812 µs");
    CHECK(human_ms(0.0136) == "13.6 µs");
    CHECK(human_ms(1200) == "1.20 s");
    CHECK(human_count(21282122) == "21.3 M");
    CHECK(human_count(512) == "512");
    CHECK(human_percent(0.253) == "25%");
    CHECK(human_percent(0.004) == "0.4%");
    CHECK(human_change(55, 100) == "45% fewer");
    CHECK(human_change(100, 100) == "the same");
    CHECK(plural(1, "site") == "1 site");
    CHECK(plural(1200, "site") == "1,200 sites");
    CHECK(escape_html("<a href=\"x\">&'") == "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    CHECK(escape_csv("a,\"b\"") == "\"a,\"\"b\"\"\"");
    CHECK(escape_csv("=1+1") == "'=1+1");
}

TEST_CASE("a run folder is read into values", "[unit][report]") {
    FinishedRun run = read_run(test::sample_runs() / "resnet34-host");
    CHECK(run.model == "resnet34-cifar10");
    CHECK(run.sites.size() == 37);
    CHECK(run.original.latency.median_ms == run.result["original"]["median_ms"].get<double>());
    CHECK(run.guard.threshold == std::vector<double>{0.8, 1.25});
    CHECK(run.evidence.size() == 216);
    CHECK(run.stages.front().first == "read");
    CHECK(run.stages.back().first == "write");
    for (const SiteResult& s : run.sites) {
        CHECK(s.changed() == !s.steps.empty());
        CHECK(s.proof.size() == s.steps.size());
    }
    CHECK(run.pareto.size() == 15);
    CHECK(run.pareto.front().points == run.result["pareto"][0]["loss"]["points"].get<double>());
    REQUIRE_FALSE(run.steps.empty());
    for (const NetworkChange& s : run.steps) {
        CHECK((s.step.rule == "narrow-stream" || s.step.rule == "drop-branch"));
        REQUIRE(s.guard);
        CHECK(s.guard->points == 0.05);
    }
    CHECK(headline(run).find("runs 1.51× faster on host") != std::string::npos);
    CHECK(headline(read_run(test::sample_runs() / "resnet34-nano")).find("is estimated to run") != std::string::npos);
    CHECK(headline(read_run(test::sample_runs() / "tiny-original")).find("stays as it is") != std::string::npos);
}

TEST_CASE("steps are told in words", "[unit][report]") {
    StepTaken group{"group-axes", "neural", {{"?a", "co"}, {"?b", "ci"}, {"?g", "4"}}, 1, "", "", ""};
    CHECK(group.words() == "group co with ci in 4 blocks in part 1");
    CHECK(group.text() == "group-axes ?a=co ?b=ci ?g=4 (part 1)");
    StepTaken narrow{"narrow-stream", "neural", {{"?w", "48"}}, {}, "", "", ""};
    CHECK(narrow.words() == "keep 48 channels of a residual stream");
    CHECK(NetworkChange{narrow, {"conv1", "conv2", "fc"}, {}}.title() == "narrow-stream ?w=48 at conv1 and 2 more");
    StepTaken unknown{"my-rule", "exact", {{"?x", "3"}}, {}, "", "", ""};
    CHECK(unknown.words() == "my-rule ?x=3");
}

TEST_CASE("a folder that is no run is refused in words", "[errors][report]") {
    test::TemporaryFolder folder;
    CHECK_THROWS_WITH(read_run(folder.path()), Catch::Contains("has no result.json") && Catch::Contains("loopegg optimize"));
    write_file(folder / "result.json", "{\"model\": ");
    CHECK_THROWS_WITH(read_run(folder.path()), Catch::Contains("result.json") && Catch::Contains("not JSON"));
    write_file(folder / "result.json", "{\"model\": 1e9223372036854775807}");  // the parser has another exception for what fits in no number
    CHECK_THROWS_AS(read_run(folder.path()), UserError);
    CHECK_THROWS_WITH(read_run(folder.path()), Catch::Contains("result.json") && Catch::Contains("not JSON"));
    write_file(folder / "result.json", "{\"model\": \"m\"}");
    CHECK_THROWS_WITH(read_run(folder.path()), Catch::Contains("docs/reference/formats.md"));
    std::filesystem::copy_file(test::sample_runs() / "tiny-original/result.json", folder / "result.json", std::filesystem::copy_options::overwrite_existing);
    CHECK_NOTHROW(read_run(folder.path()));
    write_file(folder / "evidence.jsonl", R"({"sites": {"a.conv1": "groups 2", "b.conv1": "groups 2"}, "kept": 0.9, "allowed": true})"
                                          "\n");
    CHECK(read_run(folder.path()).evidence.at(0).site == "a.conv1 and 1 more");
    CHECK(read_run(folder.path()).evidence.at(0).ratio == 0.9);
    write_file(folder / "evidence.jsonl", "{\"key\": \"1\"}\nnot json\n");
    CHECK_THROWS_WITH(read_run(folder.path()), Catch::Contains("evidence.jsonl") && Catch::Contains("line 2"));
}

TEST_CASE("a page without its plotting library is refused in words", "[errors][report]") {
    ::setenv("LOOPEGG_VEGA", "/nowhere/index.js", 1);
    FinishedRun run = read_run(test::sample_runs() / "tiny-original");
    CHECK_THROWS_WITH(report_page(run), Catch::Contains("/nowhere/index.js") && Catch::Contains("./loopegg"));
    ::unsetenv("LOOPEGG_VEGA");
}

TEST_CASE("a page tells what rules over the network did, and leaves a network out that could not be timed", "[unit][report]") {
    FinishedRun run = read_run(test::sample_runs() / "resnet34-host");
    run.result["networks"][1]["latency_ms"] = nullptr;
    const std::string page = report_page(run);
    for (const char* words :
         {"keep 48 channels of a residual stream", "leave a branch out", "not computed", "front-1 (chosen)", "by more than 0.02 points", "points lost"})
        CHECK(page.find(words) != std::string::npos);
    CHECK(page.find("front-2") == std::string::npos);
}

TEST_CASE("names from a file cannot become markup", "[unit][report]") {
    FinishedRun run = read_run(test::sample_runs() / "tiny-original");
    run.model = "<script>alert(1)</script>", run.sites[0].name = "\"><img src=x>", run.why = "</script><b>";
    std::string page = report_page(run);
    CHECK(page.find("<script>alert") == std::string::npos);
    CHECK(page.find("<img src=x") == std::string::npos);
    CHECK(page.find("</script><b>") == std::string::npos);
    CHECK(page.size() < 5'000'000);
    CHECK(page.find("src=\"http") == std::string::npos);
}
