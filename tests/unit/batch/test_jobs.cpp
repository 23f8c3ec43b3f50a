#include <catch2/catch.hpp>

#include <set>

#include "../../flow/shell.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "batch/batch.hpp"
#include "batch/slurm.hpp"

using namespace loopegg;

namespace {

std::vector<Job> jobs_of(const std::string& text) { return read_jobs(make_source("jobs.json", text)); }

// Ends after so many polls, well or not, without any process.
class FakeRunner : public JobRunner {
public:
    struct Fake : RunningJob {
        int polls = 2;
        std::string error;
        bool* stopped = nullptr;
        std::optional<std::string> ended() override { return polls-- > 0 ? std::nullopt : std::optional(error); }
        void stop() override {
            if (stopped) *stopped = true;
        }
    };
    std::unique_ptr<RunningJob> start(const Job& job, const std::filesystem::path& folder) override {
        ++started;
        if (job.model == "cannot-start") throw UserError("no such program");
        auto fake = std::make_unique<Fake>();
        if (job.model == "fails") fake->error = "error: it fails";
        if (job.model == "forever") fake->polls = 1 << 30;
        fake->stopped = &stopped;
        std::filesystem::create_directories(folder);
        if (job.model != "writes-nothing")
            write_file(folder / "result.json", R"({"model": "m", "original": {"median_ms": 2}, "optimized": {"median_ms": 1}, "speedup": 2, "sites": []})");
        return fake;
    }
    int started = 0;
    bool stopped = false;
};

}  // namespace

TEST_CASE("a batch file is every combination of its lists", "[unit][batch]") {
    auto jobs = jobs_of(
        R"({"models": ["zoo:resnet18", "m.json"], "targets": ["host", "nano"], "seeds": [1, 2, 3],
            "options": {"strict-fp": true, "trials": 20, "batch": "4"}})");
    CHECK(jobs.size() == 12);
    std::set<std::string> ids, names;
    for (const Job& j : jobs) ids.insert(j.id), names.insert(j.name);
    CHECK(ids.size() == 12);
    CHECK(names.size() == 12);
    CHECK(jobs[0].name == "resnet18.host.default.1");
    CHECK(jobs[0].arguments("out") == std::vector<std::string>{"optimize", "zoo:resnet18", "--target", "host", "--seed", "1", "--out", "out", "--batch", "4",
                                                               "--strict-fp", "--trials", "20"});
    CHECK(jobs_of(R"({"models": "a", "rules": "r.rules"})")[0].arguments("o") ==
          std::vector<std::string>{"optimize", "a", "--target", "host", "--seed", "1", "--out", "o", "--rules", "r.rules"});
    CHECK(jobs_of(R"({"models": ["a", "a"]})").size() == 1);
    // Two models that look alike as folders still get a folder each.
    auto alike = jobs_of(R"({"models": ["x/net.json", "y/net.json"]})");
    CHECK(alike[0].name != alike[1].name);
}

TEST_CASE("mistakes in a batch file are reported with their place", "[errors][batch]") {
    CHECK_THROWS_WITH(jobs_of(R"({"targets": ["host"]})"), Catch::Contains("models"));
    CHECK_THROWS_WITH(jobs_of("{\"models\": [\"a\"],\n \"target\": [\"host\"]}"), Catch::Contains("jobs.json:2") && Catch::Contains("did you mean 'targets'"));
    CHECK_THROWS_WITH(jobs_of(R"({"models": []})"), Catch::Contains("empty"));
    CHECK_THROWS_WITH(jobs_of(R"({"models": ["a"], "options": {"seed": 1}})"), Catch::Contains("the batch sets it itself"));
    CHECK_THROWS_WITH(jobs_of(R"({"models": ["a"], "options": {"keep": [1]}})"), Catch::Contains("an array"));
    CHECK_THROWS_WITH(jobs_of(R"({"models": ["a"], "seeds": ["x"]})"), Catch::Contains("jobs.json:1"));
}

TEST_CASE("a batch file gives options their values, and nothing else: no command, no folder, no store", "[errors][batch]") {
    CHECK_THROWS_WITH(jobs_of(R"({"models": ["a"], "options": {"runner": "touch HARMED"}})"), Catch::Contains("runs no commands"));
    CHECK_THROWS_WITH(jobs_of(R"({"models": ["a"], "options": {"store": "/elsewhere"}})"), Catch::Contains("the batch sets it itself"));
    for (const char* name : {"out=/elsewhere", "runner=touch HARMED", "-o", "", "o", "trials 2", "--out"})
        CHECK_THROWS_WITH(jobs_of(R"({"models": ["a"], "options": {")" + std::string(name) + R"(": true}})"), Catch::Contains("is not the name of an option"));
    CHECK_THROWS_WITH(jobs_of(R"({"models": ["--runner=touch HARMED"]})"), Catch::Contains("read as an option"));
    CHECK_THROWS_WITH(jobs_of(R"({"models": [""]})"), Catch::Contains("is no model's name"));
}

TEST_CASE("names of files are words of the script for Slurm, whatever they are", "[errors][batch]") {
    test::TemporaryFolder folder;
    for (const char* name : {"plain", "with space", "$(touch HARMED)", "`touch HARMED`", "'; touch HARMED; '", "\"; touch HARMED; \"", "a\nb\n#SBATCH --wrap=x",
                             "-rf", "*", "${IFS}"}) {
        const std::filesystem::path here = folder / name;
        std::filesystem::create_directories(here);
        write_file(here / "loopegg", "#!/bin/sh\nfor word; do printf '[%s]' \"$word\"; done\n");
        std::filesystem::permissions(here / "loopegg", std::filesystem::perms::owner_all);
        write_file(here / "jobs.json", "{}");
        SlurmOptions options;
        options.program = here / "other";
        write_file(folder / "array.sh", slurm_script(here / "loopegg", here / "jobs.json", here, options));
        const test::Ran ran = test::shell("cd " + test::quoted(folder.path().string()) + " && sh array.sh");
        INFO(name);
        CHECK(ran.code == 0);
        CHECK(ran.out.starts_with("[batch][" + (here / "jobs.json").string() + "][--out][" + here.string() + "][--leave]"));
        CHECK(ran.out.find("[--program][" + (here / "other").string() + "]") != std::string::npos);
        CHECK_FALSE(std::filesystem::exists(folder / "HARMED"));
    }
}

TEST_CASE("a failed job keeps its error and stops no other", "[unit][batch]") {
    test::TemporaryFolder folder;
    auto jobs = jobs_of(R"({"models": ["good", "fails", "cannot-start", "writes-nothing", "fine"]})");
    auto queue = std::make_unique<JobQueue>(folder / "queue.sqlite");
    FakeRunner runner;
    BatchOptions options{folder.path(), 2, 0, 0.001};
    CHECK(run_batch(jobs, *queue, runner, options, [](auto&) { return false; }));
    auto result = batch_result(jobs, *queue, folder.path());
    CHECK(result["done"] == 2);
    CHECK(result["failed"] == 3);
    CHECK(result["jobs"][1]["error"] == "error: it fails");
    CHECK(result["jobs"][2]["error"].get<std::string>().find("no such program") != std::string::npos);
    CHECK(result["jobs"][3]["error"].get<std::string>().find("no result.json") != std::string::npos);
    CHECK(result["jobs"][4]["speedup"] == 2);
    // A second run of the same batch has nothing to do; --retry gives the failed ones another chance.
    runner.started = 0;
    CHECK(run_batch(jobs, *queue, runner, options, [](auto&) { return false; }));
    CHECK(runner.started == 0);
    queue->forget_failures({jobs[1].id, jobs[4].id});
    CHECK(run_batch(jobs, *queue, runner, options, [](auto&) { return false; }));
    CHECK(runner.started == 1);
}

TEST_CASE("a batch that is stopped puts its jobs back, and a job has its time limit", "[unit][batch]") {
    test::TemporaryFolder folder;
    auto jobs = jobs_of(R"({"models": ["forever"]})");
    auto queue = std::make_unique<JobQueue>(folder / "queue.sqlite");
    FakeRunner runner;
    int polls = 0;
    CHECK_FALSE(run_batch(jobs, *queue, runner, {folder.path(), 1, 0, 0.001}, [&](auto&) { return ++polls > 3; }));
    CHECK(runner.stopped);
    CHECK(queue->list({jobs[0].id})[0].state == JobState::waiting);
    CHECK(run_batch(jobs, *queue, runner, {folder.path(), 1, 0.02, 0.001}, [](auto&) { return false; }));
    CHECK(queue->list({jobs[0].id})[0].error.find("the limit for one job") != std::string::npos);
}

TEST_CASE("a job is taken once, and a finished job by its owner alone", "[unit][batch]") {
    test::TemporaryFolder folder;
    auto jobs = jobs_of(R"({"models": ["a", "b"]})");
    auto queue = std::make_unique<JobQueue>(folder / "queue.sqlite"), other = std::make_unique<JobQueue>(folder / "queue.sqlite");
    queue->add(jobs), other->add(jobs);
    std::vector<std::string> ids{jobs[0].id, jobs[1].id};
    CHECK(queue->take() == ids[0]);
    CHECK(other->take() == ids[1]);
    CHECK_FALSE(queue->take().has_value());
    queue->finish(ids[0], "", 2);
    CHECK(other->list(ids)[0].state == JobState::done);
    CHECK(other->list(ids)[0].seconds == 2);
}
