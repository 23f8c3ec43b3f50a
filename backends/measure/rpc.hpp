// Devices elsewhere, through TVM's own RPC: TVM ships the server (python3 -m tvm.exec.rpc_server), and this is the client.
#pragma once
#include <string>
#include <vector>

#include "backends/target/target.hpp"
#include "base/term.hpp"

namespace loopegg {

struct BoardTimes {
    std::vector<double> ms{};
    std::string wrong{};  // what is wrong with the nest: it does not compile, or its result is not the reference's
};

// Compiles the nest here, and checks it on whole numbers and times it on the device. The other side may cheat, stall or announce any size, so this runs in
// a worker of the role `board`, which has a limit of time and memory. Throws UserError when the server cannot be used (the machine's fault).
BoardTimes measure_over_rpc(const Term& nest, const Target& target, int samples);

}  // namespace loopegg
