#include <catch2/catch.hpp>

#include "report/dashboard.hpp"

using namespace loopegg;

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

TEST_CASE("the dashboard tells how far a batch is, what failed and why, and the best that was measured", "[unit][report]") {
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

TEST_CASE("a dashboard of boards tells which are away and why", "[unit][report]") {
    Dashboard d;
    d.boards = {{"pi4", "pi@a", true, "", "Cortex-A72", "governor ondemand, 51.2 °C", 120, 2, 60, 3},
                {"pi4", "pi@b", false, "board pi@b went away", "", "", 80, 4, 12, 12}};
    CHECK(dashboard_headline(d) == "1 of 2 boards are up");
    const std::string page = dashboard_page(d);
    for (const char* words : {"pi@a", "governor ondemand, 51.2 °C", "board pi@b went away", "120", "away"}) CHECK(page.find(words) != std::string::npos);
}
