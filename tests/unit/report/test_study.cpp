#include <catch2/catch.hpp>

#include "../../flow/shell.hpp"
#include "base/text.hpp"
#include "report/study.hpp"

using namespace loopegg;

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
