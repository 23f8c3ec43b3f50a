// Devices elsewhere, through TVM's own RPC: the server is the one that TVM ships (python3 -m tvm.exec.rpc_server), this is the client.
#pragma once
#include <string>

#include "backends/target/target.hpp"
#include "base/term.hpp"
#include "extract/measurer.hpp"

namespace loopegg {

// Compiles the nest here, checks it there on whole numbers, and times it there. Throws UserError when the server cannot be reached
// (the machine's fault); what is wrong with the nest is in the answer.
Measured measure_over_rpc(const Term& nest, const Target& target, int samples);

}  // namespace loopegg
