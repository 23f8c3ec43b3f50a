#include <catch2/catch.hpp>

#include <cstdio>
#include <filesystem>

#include "backends/measure/rpc.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"

using namespace loopegg;

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
