// What reports, studies and dashboards read from the folders of runs.
#include <catch2/catch.hpp>

#include "../../flow/shell.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "report/dashboard.hpp"
#include "report/page.hpp"
#include "report/run.hpp"
#include "report/study.hpp"
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
    CHECK(headline(read_run(test::sample_runs() / "tiny-original")).find("is unchanged on") != std::string::npos);
}

TEST_CASE("steps are described in words", "[unit][report]") {
    StepTaken group{"group-axes", "neural", {{"?a", "co"}, {"?b", "ci"}, {"?g", "4"}}, 1, "", "", ""};
    CHECK(group.words() == "group co with ci in 4 blocks in part 1");
    CHECK(group.text() == "group-axes ?a=co ?b=ci ?g=4 (part 1)");
    StepTaken narrow{"narrow-stream", "neural", {{"?w", "48"}}, {}, "", "", ""};
    CHECK(narrow.words() == "keep 48 channels of a residual stream");
    CHECK(NetworkChange{narrow, {"conv1", "conv2", "fc"}, {}}.title() == "narrow-stream ?w=48 at conv1 and 2 more");
    StepTaken unknown{"my-rule", "exact", {{"?x", "3"}}, {}, "", "", ""};
    CHECK(unknown.words() == "my-rule ?x=3");
}

TEST_CASE("a page names the folder in which the run will be", "[unit][report]") {
    const std::string page = report_page(test::sample_runs() / "tiny-original", "runs/my out");
    CHECK_THAT(page, Catch::Contains("runs/my out"));
    CHECK_THAT(page, !Catch::Contains((test::sample_runs() / "tiny-original").string()));
    CHECK_THAT(report_page(test::sample_runs() / "tiny-original", "out"), Catch::Contains("loopegg explain out --check"));
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

TEST_CASE("a page shows what rules over the network did, and leaves a network out that could not be timed", "[unit][report]") {
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

namespace {

Study samples() {
    std::vector<FinishedRun> runs;
    for (const char* name : {"resnet34-host", "resnet34-nano", "densenet-host", "mobilenet-host", "tiny-original"})
        runs.push_back(read_run(test::sample_runs() / name));
    return study_runs(runs);
}

}  // namespace

TEST_CASE("a study counts every site once", "[unit][report]") {
    Study study = samples();
    int sites = 0, early_to_late = 0;
    for (const SequenceCount& c : study.sequences) {
        sites += c.sites, early_to_late += c.by_depth[0] + c.by_depth[1] + c.by_depth[2];
        int targets = 0;
        for (const auto& [target, count] : c.by_target) targets += count;
        CHECK(targets == c.sites);
    }
    CHECK(sites == static_cast<int>(study.sites.size()));
    CHECK(early_to_late == sites);
    CHECK(study.paper + study.known + study.unnamed == study.changed);
    CHECK(study.sequences.back().label == "dense");
    REQUIRE(study.sequences.back().speedup);
    CHECK(*study.sequences.back().speedup == Approx(1));
    CHECK(study.targets == std::vector<std::string>{"host", "nano"});
    CHECK(study.never_fired == std::vector<std::string>{"drop-growth"});
}

TEST_CASE("a study's figures follow from its sites", "[unit][report]") {
    Study study = samples();
    const SequenceCount& first = study.sequences.front();
    double saved = 0;
    int measured = 0, all = 0;
    for (const StudySite& s : study.sites)
        if (s.label == first.label) saved += s.before_ms - s.after_ms, measured += s.measured, ++all;
    CHECK(first.saved_ms == Approx(saved));
    CHECK(first.estimated == all - measured);
    // One line a site and one head line.
    CHECK(split(sites_csv(study), '\n').size() == study.sites.size() + 2);
    CHECK(split(sequences_csv(study), '\n').size() == study.sequences.size() + 2);
    CHECK(frequency_svg(study).find(first.label) != std::string::npos);
    CHECK(depth_svg(study).find("late third") != std::string::npos);
}

TEST_CASE("a study counts the steps over networks, and says no speed-up of what is not computed", "[unit][report]") {
    const Study study = study_runs({read_run(test::sample_runs() / "mobilenet-host")});
    std::map<std::string, int> sites, steps;
    for (const SequenceCount& c : study.sequences) {
        sites[c.label] = c.sites;
        CHECK(c.speedup.has_value() == (c.label != "dropped"));
        if (c.label == "dropped") CHECK(c.macs_kept == 0);
    }
    for (const StepCount& c : study.steps) steps[c.rule + " " + c.parameters] = c.times;
    REQUIRE((sites["narrower"] > 0 && sites["dropped"] > 0));
    CHECK(steps["narrow-stream ?w=48"] == sites["narrower"]);
    CHECK(steps["drop-branch "] == sites["dropped"]);
    CHECK_FALSE(steps.contains("write-layer "));
    CHECK(to_json(study)["sequences"].dump().find("null") != std::string::npos);
}

TEST_CASE("fame tells the paper's sequences from operators and from the unnamed", "[unit][report]") {
    CHECK(fame_of("S2") == Fame::paper);
    CHECK(fame_of("depthwise") == Fame::known);
    CHECK(fame_of("dense") == Fame::dense);
    CHECK(fame_of("narrower") == Fame::known);
    CHECK(fame_of("dropped") == Fame::known);
    CHECK(fame_of("unnamed") == Fame::unnamed);
    SiteResult site;
    site.sequence = "unnamed", site.key = "cut-domain group-axes bottleneck-axis";
    CHECK(label_of(site) == site.key);
}

TEST_CASE("every variant that a run judged or timed has a row for each site that it changed", "[unit][report]") {
    FinishedRun run = read_run(test::sample_runs() / "tiny-original");
    const auto network = [](const char* name, double ms, double points, bool chosen, const char* plan) {
        return nlohmann::json{{"finalist", name},
                              {"latency_ms", ms},
                              {"baseline_ms", 9.0},
                              {"allowed", true},
                              {"chosen", chosen},
                              {"loss", {{"points", points}}},
                              {"plan", nlohmann::json::parse(plan)}};
    };
    run.result["networks"] = {
        network("front-1", 4.0, 0.9, true,
                R"({"steps": [{"site": "a", "apply": [{"rule": "drop-branch"}]}, {"site": "b", "apply": [{"rule": "narrow-width", "with": {"?w": 8}}]}]})"),
        network("front-2", 6.0, 0.1, false, R"({"steps": [{"site": "b", "apply": [{"rule": "group-axes", "with": {"?a": "co", "?g": 2}}]}]})")};
    std::vector<SiteVariant> timed;
    for (const SiteVariant& v : variants_of(run))
        if (v.stage == "timed") timed.push_back(v);
    REQUIRE(timed.size() == 3);
    CHECK((timed[0].chosen && timed[0].why_not.empty() && timed[0].site == "a" && timed[0].steps == "drop-branch"));
    CHECK(timed[1].steps == "narrow-width ?w=8");
    CHECK(timed[2].why_not == "the chosen network is faster (4.000 ms)");
    CHECK((timed[2].ms == 6.0 && timed[2].original_ms == 9.0 && timed[2].points == 0.1));
    CHECK(split(variants_csv({run}), '\n').size() == variants_of(run).size() + 2);
}

namespace {

Dashboard some() {
    Dashboard d;
    d.batch = "runs", d.date = "2026-11-17 00:00:00";
    d.jobs = {{"slow", "done", "", "", 1, 1.2, 6.0, 5.0, 0.9, true},
              {"fast", "done", "", "", 1, 2.0, 6.0, 3.0, 0.9, true},
              {"guess", "done", "", "", 1, 9.0, 9.0, 1.0, 0.9, false},
              {"broken", "failed", "", "cannot read '<script>'"},
              {"next", "waiting"}};
    return d;
}

}  // namespace

TEST_CASE("the dashboard shows how far a batch is, what failed and why, and the best that was measured", "[unit][report]") {
    const Dashboard d = some();
    CHECK(dashboard_headline(d) == "3 of 5 jobs are done, and 1 failed");
    REQUIRE(d.best());
    CHECK(d.best()->name == "fast");  // what is only estimated comes after what was measured
    const std::string page = dashboard_page(d);
    CHECK(page.find("cannot read &#39;&lt;script&gt;&#39;") != std::string::npos);
    CHECK(page.find("fast: 3.00 ms instead of 6.00 ms") != std::string::npos);
    CHECK(page.find("http-equiv=\"refresh\"") == std::string::npos);
    CHECK(page.find("http://") == std::string::npos);
    CHECK(page.find("vegaEmbed =") == std::string::npos);
}

TEST_CASE("a dashboard that is written again and again asks the browser to look again", "[unit][report]") {
    Dashboard d = some();
    d.refresh_seconds = 10;
    CHECK(dashboard_page(d).find("<meta http-equiv=\"refresh\" content=\"10\">") != std::string::npos);
}

TEST_CASE("a dashboard of boards shows which are away and why", "[unit][report]") {
    Dashboard d;
    d.boards = {{"pi4", "pi@a", true, "", "Cortex-A72", "governor ondemand, 51.2 °C", 120, 2, 60, 3},
                {"pi4", "pi@b", false, "board pi@b went away", "", "", 80, 4, 12, 12}};
    CHECK(dashboard_headline(d) == "1 of 2 boards are up");
    const std::string page = dashboard_page(d);
    for (const char* words : {"pi@a", "governor ondemand, 51.2 °C", "board pi@b went away", "120", "away"}) CHECK(page.find(words) != std::string::npos);
}
