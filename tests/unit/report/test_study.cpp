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
