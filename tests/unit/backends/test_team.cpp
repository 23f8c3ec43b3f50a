// The threads of compiled kernels: every part of a loop runs once, whoever is there, and teams know nothing of each other.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

extern "C" {
#include "backends/runtime/loopegg_pace.h"
#include "backends/runtime/loopegg_runtime.h"
struct ParallelGroup {
    void* sync;
    std::int32_t count;
};
extern int (*__TVMBackendParallelLaunch)(int (*)(int, ParallelGroup*, void*), void*, int);
}
#include "base/files.hpp"
#include "base/scratch.hpp"

namespace {

using loopegg::ScratchFolder;

// A parallel loop as generated code has it: part i of n does turns [i * chunk, (i + 1) * chunk).
struct Loop {
    int turns;
    std::function<int(int turn)> body;

    int run() { return __TVMBackendParallelLaunch(part, this, 0); }

private:
    static int part(int index, ParallelGroup* group, void* data) {
        Loop& loop = *static_cast<Loop*>(data);
        const int chunk = (loop.turns + group->count - 1) / group->count;
        int failed = 0;
        for (int t = index * chunk; t < std::min(loop.turns, (index + 1) * chunk); ++t) failed |= loop.body(t);
        return failed ? -1 : 0;
    }
};

class Team {
public:
    explicit Team(int threads) : team_(loopeggrt_team_create(threads)) { REQUIRE(loopeggrt_team_enter(team_)); }
    ~Team() {
        loopeggrt_team_leave(team_);
        loopeggrt_team_destroy(team_);
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    operator loopegg_team*() const { return team_; }

private:
    loopegg_team* team_;
};

// How often each turn of a loop ran.
std::vector<int> counted(int turns) {
    std::vector<std::atomic<int>> counts(static_cast<std::size_t>(turns));
    Loop loop{turns, [&](int t) {
                  ++counts[static_cast<std::size_t>(t)];
                  return 0;
              }};
    CHECK(loop.run() == 0);
    return {counts.begin(), counts.end()};
}
std::vector<int> once_each(int turns) { return std::vector<int>(static_cast<std::size_t>(turns), 1); }

std::size_t threads_here() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

void wait_until(const std::atomic<int>& value, int wanted) {
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (value < wanted && std::chrono::steady_clock::now() < late) std::this_thread::yield();
}

}  // namespace

TEST_CASE("every turn of a loop runs once, with any number of threads") {
    for (int threads : {1, 2, 3, 5, 16}) {
        Team team(threads);
        for (int use : {threads, 1, (threads + 1) / 2})
            for (int turns : {1, 2, 3, 7, 16, 33, 1000})
                for (int announced : {0, turns, 5}) {  // a wrong number costs time and nothing else
                    CAPTURE(threads, use, turns, announced);
                    loopeggrt_team_use(team, use);
                    loopeggrt_team_turns(team, announced);
                    for (int again = 0; again < 20; ++again) REQUIRE(counted(turns) == once_each(turns));
                }
    }
}

TEST_CASE("loops run without a team, and alone inside a loop") {
    CHECK(counted(7) == once_each(7));
    Team team(4);
    std::atomic<int> inner{0}, others{0};
    Loop outer{8, [&](int) {
                   const std::thread::id me = std::this_thread::get_id();
                   Loop loop{5, [&](int) {
                                 ++inner;
                                 if (std::this_thread::get_id() != me) ++others;
                                 return 0;
                             }};
                   return loop.run();
               }};
    CHECK(outer.run() == 0);
    CHECK(inner == 40);
    CHECK(others == 0);
}

TEST_CASE("one failed part fails its loop, and no other") {
    Team team(3);
    Loop bad{50, [](int t) { return t == 31; }};
    CHECK(bad.run() != 0);
    CHECK(counted(50) == once_each(50));
}

TEST_CASE("loops that need nothing of each other run in one region") {
    Team team(2);
    std::atomic<int> first{0}, second{0}, third{0};
    // Each of the first two loops has one turn, which waits for the other's: only in one region both are there at once.
    Loop a{1, [&](int) {
               ++first;
               wait_until(second, 1);
               return 0;
           }};
    Loop b{1, [&](int) {
               ++second;
               wait_until(first, 1);
               return second == 1 && first == 1 ? 0 : -1;
           }};
    Loop c{40, [&](int) {
               ++third;
               return 0;
           }};
    struct Rest {
        loopegg_team* team;
        std::vector<Loop*> loops;
        static int more(void* data) {
            Rest& rest = *static_cast<Rest*>(data);
            int failed = 0;
            while (!rest.loops.empty()) {
                Loop* next = rest.loops.back();
                rest.loops.pop_back();
                loopeggrt_team_join(rest.team, rest.loops.empty() ? nullptr : more, data);
                failed |= next->run();
            }
            return failed;
        }
    } rest{team, {&c, &b, &a}};
    loopeggrt_team_turns(team, 1);
    CHECK(Rest::more(&rest) == 0);
    CHECK((first == 1 && second == 1 && third == 40));
    CHECK(counted(9) == once_each(9));
}

TEST_CASE("no more threads take part than finish a loop as early as all would") {
    Team team(16);
    for (const auto& [turns, threads] : {std::pair{1, 1}, {5, 5}, {28, 14}, {33, 11}, {17, 9}}) {
        CAPTURE(turns);
        std::mutex mutex;
        std::set<std::thread::id> there;
        Loop loop{turns, [&](int) {
                      std::this_thread::sleep_for(std::chrono::microseconds(200));  // long enough for every thread to come
                      const std::lock_guard lock(mutex);
                      there.insert(std::this_thread::get_id());
                      return 0;
                  }};
        loopeggrt_team_turns(team, turns);
        CHECK(loop.run() == 0);
        CHECK(static_cast<int>(there.size()) <= threads);
    }
}

TEST_CASE("each loop of a kernel is cut by its own number of turns") {
    Team team(4);
    std::vector<int> parts;
    const auto cut = [](int index, ParallelGroup* group, void* data) {
        if (index == 0) static_cast<std::vector<int>*>(data)->push_back(group->count);
        return 0;
    };
    const auto kernel = [&](int loops) {
        for (int i = 0; i < loops; ++i) CHECK(__TVMBackendParallelLaunch(cut, &parts, 0) == 0);
    };
    constexpr std::int64_t second = std::int64_t{1} << loopegg_turn_bits, third = second << loopegg_turn_bits;
    loopeggrt_team_turns(team, 3 + 12 * second + 7 * third);
    kernel(5);
    CHECK(parts == std::vector{3, 12, 7, 3, 12});  // after the last loop the first one comes again
    parts.clear();
    loopeggrt_team_turns(team, 6);
    kernel(2);
    CHECK(parts == std::vector{6, 6});
    parts.clear();

    // Another kernel whose loop joins the first loop does not change what the second loop gets.
    struct Other {
        loopegg_team* team;
        int (*cut)(int, ParallelGroup*, void*);
        std::vector<int>* parts;
        static int more(void* data) {
            const Other& other = *static_cast<Other*>(data);
            loopeggrt_team_turns(other.team, 9);
            loopeggrt_team_join(other.team, nullptr, nullptr);
            return __TVMBackendParallelLaunch(other.cut, other.parts, 0);
        }
    };
    std::vector<int> of_other;
    Other other{team, cut, &of_other};
    loopeggrt_team_turns(team, 3 + 12 * second);
    loopeggrt_team_join(team, Other::more, &other);
    kernel(2);
    CHECK(parts == std::vector{3, 12});
    CHECK(of_other == std::vector{9});
}

TEST_CASE("teams of many callers at once stay apart, and leave no threads behind") {
    const std::size_t before = threads_here();
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 8; ++i)
        callers.emplace_back([&, i] {
            for (int again = 0; again < 20; ++again) {
                loopegg_team* team = loopeggrt_team_create(1 + i % 4);
                if (!team || !loopeggrt_team_enter(team)) ++wrong;
                for (int n = 0; n < 30; ++n) {
                    std::vector<std::atomic<int>> counts(static_cast<std::size_t>(20 + i));
                    Loop loop{20 + i, [&](int t) {
                                  ++counts[static_cast<std::size_t>(t)];
                                  return 0;
                              }};
                    if (loop.run()) ++wrong;
                    for (const auto& c : counts) wrong += c != 1;
                }
                loopeggrt_team_leave(team);
                loopeggrt_team_destroy(team);
            }
        });
    for (std::thread& t : callers) t.join();
    CHECK(wrong == 0);
    CHECK(threads_here() == before);
}

TEST_CASE("a team takes one call at a time") {
    Team team(2);
    int other = -1;
    std::thread([&] { other = loopeggrt_team_enter(team); }).join();
    CHECK(other == 0);
}

TEST_CASE("a forked child has helpers of its own") {
    Team team(3);
    CHECK(counted(30) == once_each(30));  // the helpers are there
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        loopeggrt_team_leave(team);
        const std::size_t without = threads_here();  // 1, unless a sanitizer has threads of its own
        bool right = loopeggrt_team_enter(team) != 0;
        for (int again = 0; again < 50; ++again) right = right && counted(30) == once_each(30);
        right = right && threads_here() == without + 2;
        loopeggrt_team_leave(team);
        loopeggrt_team_destroy(team);
        _exit(right ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    CHECK(counted(30) == once_each(30));
}

TEST_CASE("a child that was forked may free the team of its parent") {
    Team team(3);
    CHECK(counted(30) == once_each(30));
    const pid_t child = fork();
    if (child == 0) {
        loopeggrt_team_leave(team);
        loopeggrt_team_destroy(team);
        _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("the quotas of control groups limit the threads of a team") {
    ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-cgroups");
    const auto file = [&](const std::string& name, const std::string& text) {
        const auto path = folder.path() / name;
        std::filesystem::create_directories(path.parent_path());
        loopegg::write_file(path, text);
        return path.string();
    };
    const std::string v2 = (folder.path() / "v2").string(), v1 = (folder.path() / "v1").string();
    file("v2/cpu.max", "max 100000\n");
    file("v2/pod/cpu.max", "250000 100000\n");
    file("v2/pod/box/cpu.max", "max 100000\n");
    file("v2/small/cpu.max", "50000 100000\n");
    CHECK(loopeggrt_quota(file("a", "0::/pod/box\n").c_str(), v2.c_str()) == 2);  // of the group around it, in whole processors
    CHECK(loopeggrt_quota(file("b", "0::/small\n").c_str(), v2.c_str()) == 1);
    CHECK(loopeggrt_quota(file("c", "0::/\n").c_str(), v2.c_str()) == 0);
    CHECK(loopeggrt_quota(file("d", "0::/not/there\n").c_str(), v2.c_str()) == 0);
    file("v1/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    file("v1/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    file("v1/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "300000\n");
    file("v1/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    CHECK(loopeggrt_quota(file("e", "7:cpuset:/docker/x\n3:cpu,cpuacct:/docker/x\n").c_str(), v1.c_str()) == 3);
    CHECK(loopeggrt_quota(file("f", "3:cpu,cpuacct:/other\n").c_str(), v1.c_str()) == 0);
    file("own/cpu/cpu.cfs_quota_us", "400000\n");  // a container that sees its own group as the root, and the machine's name of it
    file("own/cpu/cpu.cfs_period_us", "100000\n");
    CHECK(loopeggrt_quota(file("g", "3:cpu,cpuacct:/docker/y\n").c_str(), (folder.path() / "own").string().c_str()) == 4);
    CHECK(loopeggrt_quota((folder.path() / "none").c_str(), v2.c_str()) == 0);
    CHECK(loopeggrt_default_threads() >= 1);
}

TEST_CASE("a part of a network uses as many threads as are fastest for it") {
    loopegg_pace pace;
    REQUIRE(loopeggrt_pace_start(&pace, 8, 3) == 0);
    // What a part takes: the first is best on two threads, the second on all, and the third gains nothing by several.
    const auto ns = [](int part, int threads) -> std::int64_t {
        return part == 0 ? 1000 + 500 * std::abs(threads - 2) : part == 1 ? 90000 / threads : 9000000;
    };
    int max_tried[3] = {0, 0, 0}, min_tried[3] = {8, 8, 8}, last[3] = {0, 0, 0};
    for (int run = 0; run < 100; ++run)
        for (int part = 0; part < 3; ++part) {
            int timed = 0;
            const int threads = last[part] = loopeggrt_pace_threads(&pace, part, &timed);
            max_tried[part] = std::max(max_tried[part], threads), min_tried[part] = std::min(min_tried[part], threads);
            if (timed) loopeggrt_pace_took(&pace, part, ns(part, threads));
        }
    CHECK((last[0] == 2 && last[1] == 8 && last[2] == 1));
    CHECK((min_tried[0] == 1 && min_tried[1] == 4 && min_tried[2] == 1));  // half of the threads took twice as long: fewer are not tried
    CHECK((max_tried[0] == 8 && max_tried[1] == 8));
    loopeggrt_pace_end(&pace);
}

TEST_CASE("a network whose parts disturb each other on all threads uses fewer") {
    for (const bool disturbed : {true, false}) {
        loopegg_pace pace;
        REQUIRE(loopeggrt_pace_start(&pace, 8, 1) == 0);
        int threads = 0;
        std::int64_t now = 1;
        for (int run = 0; run < 100; ++run) {
            loopeggrt_pace_run_begins(&pace);
            int timed = 0;
            threads = loopeggrt_pace_threads(&pace, 0, &timed);
            if (timed) loopeggrt_pace_took(&pace, 0, 8000 / threads);  // by itself the part is fastest on all threads
            const std::int64_t took = 1000 + 100 * (disturbed ? std::abs(threads - 4) : 8 - threads);
            loopeggrt_pace_run_took(&pace, now += took, took, took);
        }
        CAPTURE(disturbed);
        CHECK(threads == (disturbed ? 4 : 8));
        loopeggrt_pace_end(&pace);
    }
}

TEST_CASE("a caller who does not get its processor uses fewer threads, and later all again") {
    loopegg_pace pace;
    REQUIRE(loopeggrt_pace_start(&pace, 4, 1) == 0);
    std::int64_t now = 1;
    const auto run = [&](bool contended) {
        constexpr std::int64_t all = 200000;
        loopeggrt_pace_run_begins(&pace);
        loopeggrt_pace_run_took(&pace, now += all, all, contended ? all / 2 : all);
        int timed = 0;
        return loopeggrt_pace_threads(&pace, 0, &timed);
    };
    int threads = 4, runs = 0;
    for (int i = 0; i < 100 && threads > 1; ++i) threads = run(true);
    CHECK(threads == 1);
    while (threads < 4 && ++runs < 1000000) threads = run(false);
    CHECK(threads == 4);
    loopeggrt_pace_end(&pace);
}
