#include <catch2/catch.hpp>

#include "backends/board/board_connection.hpp"
#include "backends/board/board_trial.hpp"
#include "backends/board/pack_candidate.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/target/board_address.hpp"
#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "nest/term/grammar.hpp"
#include "store/board_health.hpp"

using namespace loopegg;

TEST_CASE("the address of a board is read as ssh would, and nothing in it is an option", "[unit]") {
    const auto whole = parse_board_address("pi@board-7.lab:2222");
    REQUIRE(whole);
    CHECK(whole->user == "pi");
    CHECK(whole->host == "board-7.lab");
    CHECK(whole->port == 2222);
    CHECK(whole->words() == "pi@board-7.lab:2222");
    CHECK(parse_board_address("board")->words() == "board");
    CHECK(parse_board_address("fe80::1%eth0")->host == "fe80::1%eth0");
    const auto six = parse_board_address("pi@[::1]:22");
    REQUIRE(six);
    CHECK(six->host == "::1");
    CHECK(six->words() == "pi@[::1]:22");
    for (const char* bad : {"", "-oProxyCommand=x", "pi@-x", "pi:secret@board", "pi@board:", "pi@board:0", "pi@board:70000", "pi@board:2x", "a b", "a;b",
                            "@board", "pi@[::1", "pi@[::1]x"})
        CHECK_FALSE(parse_board_address(bad));
}

TEST_CASE("messages come in any pieces, and what is none is refused", "[unit]") {
    BoardMessage m;
    m.add("state", std::string("a\nb")).add("celsius", 51.25).add_count("n", 7).add("ms", 1.5).add("ms", 2.5);
    m.bytes = std::string("\n\n\0x", 4);
    const std::string text = m.encode() + m.encode();
    MessageReader reader(100);
    int whole = 0;
    for (char c : text) {
        reader.take({&c, 1});
        while (const auto got = reader.next()) {
            ++whole;
            CHECK(got->text("state") == "a b");  // one line
            CHECK(got->number("celsius", 0) == 51.25);
            CHECK(got->count("n", 10) == 7);
            CHECK(got->all("ms").size() == 2);
            CHECK(got->bytes == m.bytes);
        }
    }
    CHECK(whole == 2);
    CHECK(reader.empty());
    for (const char* bad : {"state\nbytes 0\n\n", "state x\n\n", "bytes -1\n\n", "bytes 101\n\n", "bytes 1e3\n\n"}) {
        MessageReader refusing(100);
        refusing.take(bad);
        CHECK_THROWS_AS(refusing.next(), BadMessage);
    }
    MessageReader endless(100);
    endless.take(std::string(1 << 17, 'x'));
    CHECK_THROWS_AS(endless.next(), BadMessage);
    CHECK_THROWS_AS(m.count("n", 6), BadMessage);
    CHECK_THROWS_AS(m.count("none", 6), BadMessage);
    CHECK_THROWS_AS(m.number("state", 0), BadMessage);
}

namespace {

BoardMessage packed(const char* text, bool spoil = false) {
    const Term nest = complete(parse_term(text));
    const Statement s = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compile_nest(nest, find_target("host"), "k");
    const auto operands = sample_operands(s, 1);
    std::vector<float> wanted = reference_output(nest, operands);
    if (spoil) wanted.back() += 1;
    return pack_candidate(kernel, s, operands, wanted, {3, 10, 4096});
}

}  // namespace

TEST_CASE("a packed candidate is checked and timed by what boards run", "[flow]") {
    for (const char* nest :
         {"(nest (linear 2 5 8) (at n (at co (at ci done))))", "(nest (map gelu 64) (par (quo x 16) (vec (rem x 16) done)))",
          "(nest (epilogue relu (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)) (par (quo co 4) (at oh (stage O (at ci (at kh (at kw (unroll (rem co 4) (vec ow "
          "done)))))))))"}) {
        const BoardMessage timed = run_trial(packed(nest));
        CAPTURE(nest, timed.text("why"));
        CHECK(timed.text("state") == "timed");
        CHECK(timed.all("ms").size() == 3);
        CHECK(timed.count("clean", 3) >= 0);
        const BoardMessage wrong = run_trial(packed(nest, true));
        CHECK(wrong.text("state") == "wrong");
        CHECK_THAT(wrong.text("why"), Catch::StartsWith("wrong output"));
    }
}

TEST_CASE("a request that is cut or lies is answered, not run", "[errors]") {
    BoardMessage m = packed("(nest (linear 2 5 8) (at n (at co (at ci done))))");
    BoardMessage cut = m;
    cut.bytes.resize(cut.bytes.size() - 4);
    CHECK(run_trial(cut).text("state") == "failed");
    BoardMessage none = m;
    none.bytes[18] = 'X';  // of another machine
    CHECK(run_trial(none).text("state") == "wrong");
    BoardMessage huge = m;
    for (auto& [key, value] : huge.lines)
        if (key == "buffer") value = "4000000000";
    CHECK(run_trial(huge).text("state") == "failed");
    CHECK(run_trial({}).text("state") == "failed");
}

TEST_CASE("a board's own words make its target", "[unit]") {
    MachineFacts pi;
    pi.architecture = "aarch64", pi.part = "0xd08", pi.cores = 4, pi.ghz = 1.5;
    const auto j = target_of_board(pi);
    CHECK(j["tvm"]["mcpu"] == "cortex-a72");
    CHECK(j["tvm"]["mtriple"] == "aarch64-linux-gnu");
    CHECK(j["machine"]["cores"] == 4);
    MachineFacts pc;
    pc.architecture = "x86_64", pc.flags = "pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";
    CHECK(target_of_board(pc)["tvm"]["mcpu"] == "x86-64-v3");
    pc.architecture = "armv7l";
    CHECK_THROWS_WITH(target_of_board(pc), Catch::Contains("armv7l"));
}

TEST_CASE("the health of boards is added up in a store", "[unit]") {
    ScratchFile file(".sqlite");
    const StoreAddress store(file.path());
    CHECK(board_health(store).empty());
    tell_board_health(store, "pi4", "pi@a", {true, "", "Cortex-A72", "governor ondemand, 50.0 °C", 3, 0});
    tell_board_health(store, "pi4", "pi@a", {false, "it went away", "", "", 1, 1});
    tell_board_health(store, "pi4", "pi@b", {true, "", "Cortex-A72", "", 5, 0});
    const auto all = board_health(store);
    REQUIRE(all.size() == 2);
    CHECK_FALSE(all[0].up);
    CHECK(all[0].why == "it went away");
    CHECK(all[0].measured == 4);
    CHECK(all[0].lost == 1);
    CHECK(all[0].cpu == "Cortex-A72");
    CHECK(all[1].up);
    CHECK_THAT(health_words(all[0]), Catch::StartsWith("away for") && Catch::EndsWith("it went away; 4 timed, 1 lost"));
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file.path().string() + end);
}
