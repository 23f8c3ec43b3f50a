// From TIR to machine code: TVM's own pass order, then its LLVM or CUDA back end.
#pragma once
#include <string>

#include "backends/lower/tvm_adapter.hpp"

namespace loopegg::tv {

struct Lowered {
    Obj host, device;  // modules
};
// Runs the passes of TVM's Python build (s_tir/pipeline.py, tirx/build.py), in the same order.
Lowered lower(Obj module, const Obj& target, const Obj& host);

std::string object_of(const Obj& lowered, const Obj& target);   // of a host module
std::string object_code(const Obj& module, const Obj& target);  // an ELF object
std::string cuda_source(const Obj& module, const Obj& target, const Obj& host);

}  // namespace loopegg::tv
