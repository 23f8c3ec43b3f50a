// A batch that is killed with -9 at random moments and continued, and two processes on one queue.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>

#include <catch2/catch.hpp>

#include "base/files.hpp"
#include "base/text.hpp"
#include "shell.hpp"

using namespace loopegg;

namespace {

const char* const twelve = R"({"models": ["one", "broken", "three", "crash"], "targets": ["host"], "seeds": [1, 2, 3]})";

pid_t start(const std::string& jobs, const std::string& out, const char* at_once) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::execl(LOOPEGG_BATCH_DRIVER, LOOPEGG_BATCH_DRIVER, jobs.c_str(), out.c_str(), LOOPEGG_SOURCE "/tests/flow/fake_optimize.py", at_once, nullptr);
        ::_exit(127);
    }
    return pid;
}

int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::map<std::string, int> tally(const std::string& file) {
    std::map<std::string, int> counts;
    for (const std::string& line : split(read_file(file), '\n'))
        if (!line.empty()) ++counts[line];
    return counts;
}

}  // namespace

TEST_CASE("a batch killed at 20 random moments gives the table of an undisturbed one", "[flow][batch]") {
    test::TemporaryFolder folder;
    write_file(folder / "jobs.json", twelve);
    ::setenv("FAKE_SECONDS", "0.02", 1);
    ::unsetenv("TALLY");
    REQUIRE(wait_for(start(folder / "jobs.json", folder / "calm", "2")) == 0);
    const std::string calm = read_file(folder / "calm/result.csv");
    CHECK(split(calm, '\n').size() == 14);
    CHECK(calm.find("ended by signal 11") != std::string::npos);
    CHECK(calm.find("cannot read 'broken': it is broken") != std::string::npos);

    std::mt19937 random(20);
    int kills = 0;
    for (int round = 0; kills < 20 && round < 400; ++round) {
        const pid_t pid = start(folder / "jobs.json", folder / "shaken", "2");
        ::usleep(static_cast<unsigned>(random() % 400'000));
        ::kill(pid, SIGKILL);
        if (wait_for(pid) == 128 + SIGKILL)
            ++kills;
        else
            std::filesystem::remove_all(folder / "shaken");  // it got through: the kills go on with a fresh one
    }
    CHECK(kills == 20);
    REQUIRE(wait_for(start(folder / "jobs.json", folder / "shaken", "2")) == 0);
    CHECK(read_file(folder / "shaken/result.csv") == calm);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "shaken")) CHECK(entry.path().extension() != ".partial");
}

TEST_CASE("two processes on one queue do each job once", "[flow][batch]") {
    test::TemporaryFolder folder;
    write_file(folder / "jobs.json", R"({"models": ["a", "b", "c", "d"], "seeds": [1, 2, 3]})");
    ::setenv("FAKE_SECONDS", "0.02", 1);
    ::setenv("TALLY", (folder / "tally").c_str(), 1);
    const pid_t first = start(folder / "jobs.json", folder / "out", "1"), second = start(folder / "jobs.json", folder / "out", "2");
    CHECK(wait_for(first) == 0);
    CHECK(wait_for(second) == 0);
    const auto counts = tally(folder / "tally");
    CHECK(counts.size() == 12);
    for (const auto& [name, times] : counts) CHECK(times == 1);
    ::unsetenv("TALLY");
}

TEST_CASE("a killed batch takes its running jobs with it", "[flow][batch]") {
    test::TemporaryFolder folder;
    write_file(folder / "jobs.json", R"({"models": ["slow"]})");
    ::setenv("FAKE_SECONDS", "1.5", 1);
    ::setenv("TALLY", (folder / "tally").c_str(), 1);
    const pid_t pid = start(folder / "jobs.json", folder / "out", "1");
    for (int i = 0; i < 400 && !std::filesystem::exists(folder / "out/runs/slow.host.default.1/log.txt"); ++i) ::usleep(10'000);
    ::kill(pid, SIGKILL);
    wait_for(pid);
    ::usleep(3'500'000);
    CHECK_FALSE(std::filesystem::exists(folder / "tally"));
    ::unsetenv("TALLY");
}
