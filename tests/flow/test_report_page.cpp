// The report in a real browser: it opens with no error, asks nothing of a network, its charts hold the run's numbers, and everyone can use it.
#include <cstdio>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "report/dashboard.hpp"
#include "report/page.hpp"
#include "report/study.hpp"
#include "shell.hpp"

using namespace loopegg;
using nlohmann::json;

namespace {

struct Look {
    const char* name;
    const char* options;
    int height;
};

const Look looks[] = {{"desktop", "--width 1280 --height 800", 800},
                      {"desktop, dark", "--width 1280 --height 800 --dark", 800},
                      {"phone", "--width 390 --height 844", 844},
                      {"phone, dark", "--width 390 --height 844 --dark", 844},
                      {"print", "--print", 800}};

json check(const std::string& page, const std::string& options) {
    test::Ran ran = test::shell("python3 " LOOPEGG_SOURCE "/tests/browser/page_check.py " + test::quoted(page) + " " + options +
                                " --script " LOOPEGG_SOURCE "/tests/browser/page_checks.js");
    if (ran.code == 77) return nullptr;
    INFO(ran.out);
    REQUIRE(ran.code == 0);
    return json::parse(ran.out);
}

bool skip(const json& answer, const char* name) {
    if (answer.is_null()) std::printf("SKIPPED: %s: there is no Chromium here (setup/prepare test-extras installs it)\n", name);
    return answer.is_null();
}

void must_be_sound(const json& answer) {
    CHECK(answer["errors"] == json::array());
    CHECK(answer["requests"] == json::array());
    CHECK(answer["result"]["problems"] == json::array());
}

}  // namespace

TEST_CASE("the report opens in Chromium and answers its four questions within two screens", "[flow][report]") {
    test::TemporaryFolder folder;
    FinishedRun run = read_run(test::sample_runs() / "resnet34-host");
    write_file(folder / "report.html", report_page(run));
    for (const Look& look : looks) {
        json answer = check(folder / "report.html", look.options);
        if (skip(answer, "the report opens in Chromium and answers its four questions within two screens")) return;
        INFO(look.name);
        must_be_sound(answer);
        for (const char* question : {"faster", "safe", "changed", "believe"}) CHECK(answer["result"]["bottoms"][question].get<int>() <= 2 * look.height);
    }
}

TEST_CASE("the charts of the report hold the numbers of result.json", "[flow][report]") {
    test::TemporaryFolder folder;
    FinishedRun run = read_run(test::sample_runs() / "resnet34-host");
    write_file(folder / "report.html", report_page(run));
    json answer = check(folder / "report.html", "");
    if (skip(answer, "the charts of the report hold the numbers of result.json")) return;
    const json &charts = answer["result"]["charts"], &file = run.result;
    CHECK(charts["latency"][0]["ms"] == file["original"]["median_ms"]);
    CHECK(charts["latency"][1]["ms"] == file["optimized"]["median_ms"]);
    CHECK(charts["capacity"][0]["ratio"] == file["guard"]["ratio"]);
    REQUIRE(charts["sites"].size() == file["sites"].size());
    for (std::size_t i = 0; i < charts["sites"].size(); ++i) {
        CHECK(charts["sites"][i]["site"] == file["sites"][i]["name"]);
        CHECK(charts["sites"][i]["before"] == file["sites"][i]["original_latency"]["median_ms"]);
        CHECK(charts["sites"][i]["after"] == file["sites"][i]["latency"]["median_ms"]);
    }
    CHECK(charts["pareto"].size() == file["pareto"].size() + 1);
    CHECK(charts["stages"][2]["seconds"] == file["seconds"]["tune"]);
    CHECK(charts["verdicts"].size() == run.evidence.size());
    // What was drawn, as a screen reader hears it: both bars of every site, and the chosen point.
    std::string drawn = answer["result"]["marks"]["sites"].dump();
    for (const json& site : file["sites"]) CHECK(drawn.find("site: " + site["name"].get<std::string>()) != std::string::npos);
}

TEST_CASE("estimated and unchanged runs make sound pages", "[flow][report]") {
    test::TemporaryFolder folder;
    for (const char* name : {"resnet34-nano", "tiny-original"}) {
        FinishedRun run = read_run(test::sample_runs() / name);
        run.evidence.resize(std::min<std::size_t>(run.evidence.size(), 1));
        write_file(folder / "report.html", report_page(run));
        json answer = check(folder / "report.html", "--width 390 --height 844");
        if (skip(answer, "estimated and unchanged runs make sound pages")) return;
        INFO(name);
        must_be_sound(answer);
    }
}

TEST_CASE("the report is used by keyboard: theme and layer rows", "[flow][report]") {
    test::TemporaryFolder folder;
    write_file(folder / "report.html", report_page(read_run(test::sample_runs() / "tiny-original")));
    json answer = check(folder / "report.html", "--keys Tab,Tab,Enter");
    if (skip(answer, "the report is used by keyboard: theme and layer rows")) return;
    CHECK(answer["result"]["theme"] == "dark");
    std::string tabs;
    for (int i = 0; i < 12; ++i) tabs += "Tab,";  // skip link, theme, six links of the contents, find, which, order, the first row
    answer = check(folder / "report.html", "--keys " + tabs + "Enter");
    CHECK(answer["result"]["open"] == 1);
    for (const json& where : answer["result"]["focus"]) CHECK(where.get<std::string>().ends_with(":solid"));
}

TEST_CASE("the dashboard opens in Chromium with and without jobs and boards", "[flow][report]") {
    test::TemporaryFolder folder;
    Dashboard d;
    d.date = "2026-11-17 00:00:00", d.batch = "runs", d.slurm = {{"RUNNING", 2}};
    d.jobs = {{"one.host", "done", "", "", 12, 1.6, 8.0, 5.0, 0.93, true},
              {"two.host", "running", "process 7 on node3", "", 4},
              {"three.host", "failed", "", "the <model> is broken"},
              {"four.host", "waiting"}};
    d.boards = {{"pi4", "pi@a", true, "", "Cortex-A72", "governor ondemand, 51.2 °C", 120, 2, 60, 3},
                {"pi4", "pi@b", false, "board pi@b went away", "Cortex-A72", "", 80, 4, 12, 12}};
    Dashboard boards_alone = d, jobs_alone = d;
    boards_alone.batch.clear(), boards_alone.jobs.clear(), boards_alone.slurm.clear(), jobs_alone.boards.clear();
    for (const Dashboard& page : {d, boards_alone, jobs_alone})
        for (const Look& look : looks) {
            write_file(folder / "dashboard.html", dashboard_page(page));
            json answer = check(folder / "dashboard.html", look.options);
            if (skip(answer, "the dashboard opens in Chromium with and without jobs and boards")) return;
            INFO(look.name);
            must_be_sound(answer);
        }
}

TEST_CASE("the study's page opens in Chromium with its charts drawn", "[flow][report]") {
    test::TemporaryFolder folder;
    Study study = study_runs({read_run(test::sample_runs() / "resnet34-host"), read_run(test::sample_runs() / "densenet-host")});
    write_file(folder / "study.html", study_page(study));
    json answer = check(folder / "study.html", "--width 390 --height 844");
    if (skip(answer, "the study's page opens in Chromium with its charts drawn")) return;
    must_be_sound(answer);
    int sites = 0;
    for (const json& bar : answer["result"]["charts"]["frequency"]) sites += bar["sites"].get<int>();
    CHECK(sites == study.changed);
}
