// Commands that run beside this process: how they end, and that nothing of them is left.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"

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
