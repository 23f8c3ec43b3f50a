#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "backends/measure/cold_weights.hpp"
#include "backends/measure/latency_store.hpp"
#include "backends/measure/rpc.hpp"
#include "backends/measure/samples.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"

using namespace loopegg;

namespace {

struct Store {
    ScratchFile file{".sqlite"};
    ~Store() {
        for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file.path().string() + end);
    }
};

MeasurerOptions options(const Store& store) {
    MeasurerOptions o;
    o.store = store.file.path();
    o.rounds = 2, o.samples = 2;
    return o;
}

// Different nests: one convolution in many orders.
std::vector<Candidate> candidates(int count) {
    std::vector<Candidate> all;
    for (int i = 0; i < count; ++i) all.push_back({parse_term("(nest (linear 2 " + std::to_string(4 + i) + " 8) (at n (at co (at ci done))))"), "host"});
    return all;
}

}  // namespace

TEST_CASE("what was measured is not measured again", "[flow]") {
    Store store;
    const auto asked = candidates(4);
    TvmMeasurer first(options(store));
    for (const Measured& m : first.measure(asked)) CHECK(m.latency.has_value());
    CHECK(first.counts().compiled == 4);
    TvmMeasurer second(options(store));
    for (const Measured& m : second.measure(asked)) CHECK(m.latency->n == 4);
    CHECK(second.counts().compiled == 0);
    CHECK(second.counts().timed == 0);
}

TEST_CASE("the first time of a key stays, whoever measures it again", "[unit]") {
    Store store;
    LatencyStore one(store.file.path()), other(store.file.path());
    const Hash128 key = Hasher().add("a nest").finish();
    const auto time = [](double ms) { return Measured{Latency{ms, 0, 1, "host", true, false}, ""}; };
    const Measured failure{{}, "it crashes", 0, true};
    one.put(key, "host", "a nest", failure);
    other.put(key, "host", "a nest", time(2));  // a time says more than a failure
    CHECK(one.find(key)->latency->median_ms == 2);
    one.put(key, "host", "a nest", time(3));
    one.put(key, "host", "a nest", failure);
    CHECK(other.find(key)->latency->median_ms == 2);
}

TEST_CASE("a time with weights out of the caches is another time than one with the same weights every time", "[flow]") {
    Store store;
    const auto asked = candidates(2);
    TvmMeasurer warm(options(store));
    warm.measure(asked);
    MeasurerOptions o = options(store);
    o.cold_bytes = 1 << 20;
    TvmMeasurer cold(o), again(o);
    for (const Measured& m : cold.measure(asked)) CHECK(m.latency.has_value());
    CHECK(cold.counts().timed == 2);
    again.measure(asked);
    CHECK(again.counts().timed == 0);
}

TEST_CASE("cold weights give every stretch of their memory before the first comes again", "[unit]") {
    ColdWeights cold(1 << 20);
    std::set<float*> seen;
    float* const first = cold.next(1000);
    for (float* at = first; seen.insert(at).second; at = cold.next(1000)) CHECK(std::all_of(at, at + 1000, [](float v) { return v == 1; }));
    CHECK(seen.size() == (1 << 18) / 1024);
    CHECK(cold.next(1 << 19) != nullptr);  // more than it had: it grows
    CHECK(cold_bytes_for(1000) == 0);
    CHECK(cold_bytes_for(85'000'000) == 128 << 20);
    CHECK(timing_words(cold_bytes_for(3 << 20)) == "cold 4 MiB");
}

TEST_CASE("two measurers at once share the work", "[flow]") {
    Store store;
    const auto asked = candidates(6);
    TvmMeasurer a(options(store)), b(options(store));
    std::vector<Measured> from_a, from_b;
    std::thread other([&] { from_b = b.measure(asked); });
    from_a = a.measure(asked);
    other.join();
    for (std::size_t i = 0; i < asked.size(); ++i) {
        REQUIRE(from_a[i].latency);
        REQUIRE(from_b[i].latency);
        CHECK(from_a[i].latency->median_ms == from_b[i].latency->median_ms);
    }
    CHECK(a.counts().timed + b.counts().timed == 6);
}

TEST_CASE("a nest that cannot be lowered or that a target cannot time costs itself alone", "[flow]") {
    Store store;
    TvmMeasurer m(options(store));
    std::vector<Candidate> asked = candidates(1);
    asked.push_back({parse_term("(nest (linear 2 4 8) (at n (at co done)))"), "host"});
    asked.push_back({parse_term("(nest (linear 2 4 8) (at n (at co (at ci done))))"), "a57"});
    asked.push_back({parse_term("(nest (linear 2 4 8) (at n (at co (at ci done))))"), "no-such-target"});
    const auto answers = m.measure(asked);
    CHECK(answers[0].latency);
    CHECK_FALSE(answers[1].latency);
    CHECK(answers[1].why != "");
    REQUIRE(answers[2].latency);
    CHECK_FALSE(answers[2].latency->measured);
    CHECK_THAT(answers[3].why, Catch::Contains("unknown target"));
}

TEST_CASE("a worker that crashes, hangs, eats memory or talks nonsense costs one candidate", "[flow]") {
    setenv("LOOPEGG_FAULTS", "1", 1);
    Store store;
    const bool deep = std::getenv("LOOPEGG_DEEP") != nullptr;
    const int count = deep ? 2000 : 12;
    const auto asked = candidates(count);
    MeasurerOptions o = options(store);
    o.limits = {deep ? 5.0 : 10.0, 2048};
    o.fault = [](std::size_t i) -> std::string {
        static constexpr const char* kinds[]{"crash", "divide", "memory", "stray", "garbage", "hang"};
        if (i % 2 == 0) return "";
        const char* kind = kinds[i / 2 % 6];
        return std::string(kind) == "hang" && i > 20 && i % 100 != 11 ? "crash" : kind;  // a hang costs its whole limit
    };
    TvmMeasurer m(o);
    const auto answers = m.measure(asked);
    for (int i = 0; i < count; ++i) {
        const Measured& a = answers[static_cast<std::size_t>(i)];
        CAPTURE(i, a.why);
        CHECK(a.latency.has_value() == (i % 2 == 0));
        CHECK(a.why.empty() == (i % 2 == 0));
    }
    CHECK(m.counts().failed == count / 2);
    unsetenv("LOOPEGG_FAULTS");
}

TEST_CASE("a nest is checked and timed on a TVM RPC server", "[flow]") {
    ScratchFile folder(".rpc");
    std::filesystem::create_directories(folder.path());
    const auto helper = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rpc_server_helper";
    FILE* server = popen((helper.string() + " " + folder.path().string() + " 2>/dev/null").c_str(), "r");
    REQUIRE(server);
    int port = 0;
    REQUIRE(std::fscanf(server, "%d", &port) == 1);
    Target board = find_target("host");
    board.name = "board", board.reach = Reach::rpc, board.address = "127.0.0.1:" + std::to_string(port);
    const BoardTimes m = measure_over_rpc(parse_term("(nest (epilogue relu (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)) (par (quo co 4) (at oh (stage O (at ci (at kh "
                                                     "(at kw (unroll (rem co 4) (vec ow done)))))))))"),
                                          board, 5);
    CHECK(m.wrong == "");
    CHECK(m.ms.size() == 5);
    pclose(server);
    std::filesystem::remove_all(folder.path());
}

TEST_CASE("a board that does not answer is named", "[errors]") {
    Target board = find_target("host");
    board.name = "board", board.reach = Reach::rpc, board.address = "127.0.0.1:1";
    CHECK_THROWS_WITH(measure_over_rpc(parse_term("(nest (zip + 8) (at x done))"), board, 3), Catch::Contains("no TVM RPC server answers at 127.0.0.1:1"));
}

TEST_CASE("threads never seem to have worked for longer than the time that passed", "[unit]") {
    std::atomic<bool> spins{false}, stop{false};
    std::thread helper([&] {
        for (spins = true; !stop;) {
        }
    });
    while (!spins) std::this_thread::yield();
    const ThreadClocks clocks;
    using Clock = std::chrono::steady_clock;
    auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
    double most = 0, sum = 0;
    for (int sample = 0; sample < 100; ++sample) {  // shorter than a tick of the scheduler
        const Clock::time_point outer = Clock::now();
        const double before = clocks.seconds();
        for (const Clock::time_point t = Clock::now(); since(t) < 0.0005;) {
        }
        const double worked = clocks.seconds() - before;
        most = std::max(most, worked / since(outer)), sum += worked;
    }
    stop = true;
    helper.join();
    CHECK(most < 2.02);  // this thread and the helper
    CHECK(sum > 0);
}
