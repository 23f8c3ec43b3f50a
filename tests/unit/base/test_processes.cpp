// Child processes and how they end, work that several threads share, and the progress that a waiting person sees.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/progress.hpp"
#include "base/scratch.hpp"
#include "base/team.hpp"

using namespace loopegg;
using Catch::Matchers::Contains;

namespace {

struct Place {
    ScratchFolder folder{std::filesystem::temp_directory_path() / "loopegg-child"};
    std::filesystem::path output = folder.path() / "output", log = folder.path() / "log", note = folder.path() / "note";
    CommandLine shell(const std::string& script) const { return {{"/bin/sh", "-c", script}, {{"NOTE", note.string()}}}; }
    std::string wait_for_note() const {
        while (!std::filesystem::exists(note)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return read_file(note);
    }
};

CommandEnd wait_for(ChildProcess& child) {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(5)))
        if (const auto end = child.ended()) return *end;
}

// A process that nobody has waited for yet is dead all the same.
bool lives(pid_t pid) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string number, name, state;
    return (stat >> number >> name >> state) && state != "Z";
}

}  // namespace

TEST_CASE("a command's output, its log and its end are told apart", "[unit][base]") {
    const Place place;
    ChildProcess well(place.shell("echo out; echo log >&2"), place.output, place.log);
    CHECK(wait_for(well).words.empty());
    CHECK(read_file(place.output) == "out\n");
    CHECK(read_file(place.log) == "log\n");
    ChildProcess badly(place.shell("echo 'error: no room' >&2; exit 3"), place.output, place.log);
    CHECK(wait_for(badly).words == "error: no room");
    ChildProcess silent(place.shell("exit 3"), place.output, place.log);
    CHECK(wait_for(silent).words == "ended with exit code 3");
    ChildProcess missing({{"/no/such/program"}}, place.output, place.log);
    CHECK_THAT(wait_for(missing).words, Contains("cannot run '/no/such/program'"));
}

TEST_CASE("a command that is ended from outside did not fail", "[unit][base]") {
    for (const char* name : {"TERM", "INT", "HUP", "SEGV"}) {
        const Place place;
        ChildProcess child(place.shell(fmt::format("kill -{} $$", name)), place.output, place.log);
        const CommandEnd end = wait_for(child);
        CHECK_THAT(end.words, Contains("ended by signal"));
        CHECK(end.is_cancelled == (std::string(name) != "SEGV"));
    }
}

TEST_CASE("a command that is stopped leaves no process behind", "[unit][base]") {
    const Place place;
    ChildProcess child(place.shell(R"(sleep 1000 & echo $! >$NOTE.new; mv $NOTE.new $NOTE; trap '' INT; while :; do sleep 1; done)"), place.output, place.log);
    const pid_t left = std::stoi(place.wait_for_note());
    CHECK(lives(left));
    child.stop();
    CHECK_FALSE(child.ended());
    for (int i = 0; i < 1000 && lives(left); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK_FALSE(lives(left));
}

TEST_CASE("a command dies with the process that started it", "[unit][base]") {
    const Place place;
    const pid_t parent = ::fork();
    if (parent == 0) {
        ChildProcess child(place.shell(R"(sleep 1000 & echo $! >$NOTE.new; mv $NOTE.new $NOTE; wait)"), place.output, place.log);
        ::pause();
    }
    const pid_t left = std::stoi(place.wait_for_note());
    CHECK(lives(left));
    ::kill(parent, SIGKILL);
    for (int i = 0; i < 1000 && lives(left); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK_FALSE(lives(left));
}

TEST_CASE("a folder in a command is one word", "[unit][base]") {
    CHECK(with_folder("train {} --out {}/x", "/a folder/it's") == R"(train '/a folder/it'\''s' --out '/a folder/it'\''s'/x)");
    CHECK(with_folder("train", "/a") == "train");
}

TEST_CASE("every member works once", "[unit][base]") {
    std::atomic<int> sum{0};
    run_together(8, [&](std::size_t m) { sum += 1 << m; });
    CHECK(sum == 255);
    run_together(0, [&](std::size_t) { sum = 0; });
    CHECK(sum == 255);
}

TEST_CASE("what a member throws comes out after all have ended", "[unit][base]") {
    std::atomic<int> ended{0};
    CHECK_THROWS_WITH(run_together(4,
                                   [&](std::size_t m) {
                                       ++ended;
                                       if (m >= 2) throw std::runtime_error("member " + std::to_string(m));
                                   }),
                      "member 2");
    CHECK(ended == 4);
}

TEST_CASE("where the system gives no thread, the caller does the work", "[unit][base]") {
    // In a process of its own, whose memory holds no further stack.
    const pid_t child = ::fork();
    if (child == 0) {
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{1} << 20);
        const rlimit memory{most, most};
        ::setrlimit(RLIMIT_AS, &memory);
        std::atomic<int> sum{0};
        run_together(4, [&](std::size_t m) { sum += 1 << m; });
        ::_exit(sum == 15 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}

TEST_CASE("a filter gets its input whole, and what it says comes back", "[unit][base]") {
    const std::string much(300'000, 'x');
    const Filtered same = run_filter({"/bin/cat"}, much, 20);
    CHECK(same.ended == 0);
    CHECK(same.output == much);
    CHECK(run_filter({"/bin/sh", "-c", "echo why >&2; exit 3"}, "", 20).errors == "why\n");
    CHECK(run_filter({"/no/such/program"}, "", 20).ended == -1);
}

TEST_CASE("a filter that only waits is waited for, and one that works without end is stopped", "[unit][base]") {
    const Filtered waits = run_filter({"/bin/sh", "-c", "sleep 0.5; echo done"}, "", 0.2);
    CHECK_FALSE(waits.too_long);
    CHECK(waits.output == "done\n");
    CHECK(run_filter({"/bin/sh", "-c", "while :; do :; done"}, "", 0.2).too_long);
    CHECK(run_filter({"/bin/sleep", "3600"}, "", 0.02).too_long);
}

namespace {

// What is written to standard error while this lives.
class Captured {
public:
    Captured() : file_(std::tmpfile()), before_(::dup(STDERR_FILENO)) { ::dup2(::fileno(file_), STDERR_FILENO); }
    ~Captured() { ::dup2(before_, STDERR_FILENO), ::close(before_), std::fclose(file_); }
    std::string text() const {
        std::string all(4096, '\0');
        all.resize(static_cast<std::size_t>(::pread(::fileno(file_), all.data(), all.size(), 0)));
        return all;
    }

private:
    std::FILE* file_;
    int before_;
};

std::size_t at(const std::string& text, const std::string& part) {
    const std::size_t found = text.find(part);
    INFO(text);
    REQUIRE(found != std::string::npos);
    return found;
}

}  // namespace

TEST_CASE("a stage inside another ends first, and the outer one still has its line", "[unit][base]") {
    std::string text;
    {
        Captured captured;
        Progress progress(Progress::Mode::lines);
        progress.stage("confirm");
        {
            Progress::Inner inner(&progress, "compile", 3);
            inner.finish("3 kernels");
        }
        try {
            Progress::Inner inner(&progress, "again", 3);
            throw std::runtime_error("a kernel that cannot be compiled");
        } catch (const std::runtime_error&) {
        }
        progress.finish("both measured");
        text = captured.text();
    }
    CHECK(at(text, "compile      3 kernels") < at(text, "again        not finished"));
    CHECK(at(text, "again        not finished") < at(text, "confirm      both measured"));
}

TEST_CASE("a notice without a recipient is no error", "[unit][base]") {
    Progress::Inner inner(nullptr, "compile", 3);
    inner.finish("3 kernels");
}
