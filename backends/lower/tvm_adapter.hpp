// The one door to TVM: every function of its registry that loopegg calls, by a name of our own.
//
// The wheel has no compiler headers: every node is an opaque ObjectRef and every operation is a registered global function.
// Names change between TVM's releases. So they are in this file alone, and all are looked up when the libraries are loaded.
#pragma once
#include <string>
#include <vector>

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/rvalue_ref.h>

// apache-tvm 0.27.0.post1 pairs with apache-tvm-ffi 0.1.14.post1, whose header says patch 15; other pairs fail silently.
static_assert(TVM_FFI_VERSION_MAJOR == 0 && TVM_FFI_VERSION_MINOR == 1 && TVM_FFI_VERSION_PATCH == 15, "wrong apache-tvm-ffi");

namespace loopegg::tv {
namespace ffi = tvm::ffi;
using ffi::Any;
using Obj = ffi::ObjectRef;
using List = ffi::Array<Any>;

#define LOOPEGG_TVM_FUNCTIONS(X)                            \
    X(int_imm, "ir.IntImm")                                 \
    X(float_imm, "ir.FloatImm")                             \
    X(string_imm, "ir.StringImm")                           \
    X(var, "ir.Var")                                        \
    X(prim_type, "ir.PrimType")                             \
    X(pointer_type, "ir.PointerType")                       \
    X(range, "ir.Range_from_min_extent")                    \
    X(call, "ir.Call")                                      \
    X(get_op, "ir.GetOp")                                   \
    X(ir_module, "ir.IRModule")                             \
    X(global_var, "ir.GlobalVar")                           \
    X(make_object, "ffi.MakeObjectFromPackedArgs")          \
    X(with_attr, "ir.BaseFuncWithAttr")                     \
    X(attrs_dict, "ir.DictAttrsGetDict")                    \
    X(add, "prim._OpAdd")                                   \
    X(sub, "prim._OpSub")                                   \
    X(mul, "prim._OpMul")                                   \
    X(div, "prim._OpDiv")                                   \
    X(floor_div, "prim._OpFloorDiv")                        \
    X(floor_mod, "prim._OpFloorMod")                        \
    X(max, "prim._OpMax")                                   \
    X(min, "prim._OpMin")                                   \
    X(ge, "prim._OpGE")                                     \
    X(lt, "prim._OpLT")                                     \
    X(eq, "prim._OpEQ")                                     \
    X(logical_and, "prim._OpAnd")                           \
    X(logical_or, "prim._OpOr")                             \
    X(if_expr, "prim._OpIfThenElse")                        \
    X(select, "prim.Select")                                \
    X(cast, "prim.Cast")                                    \
    X(ramp, "prim.Ramp")                                    \
    X(broadcast, "prim.Broadcast")                          \
    X(shuffle, "prim.Shuffle")                              \
    X(has_feature, "target.target_has_feature")             \
    X(buffer_type, "tirx.BufferType")                       \
    X(buffer_var, "tirx.BufferVar")                         \
    X(buffer_load, "tirx.BufferLoad")                       \
    X(buffer_store, "tirx.BufferStore")                     \
    X(alloc_buffer, "tirx.AllocBuffer")                     \
    X(attr_stmt, "tirx.AttrStmt")                           \
    X(evaluate, "tirx.Evaluate")                            \
    X(for_loop, "tirx.For")                                 \
    X(seq_stmt, "tirx.SeqStmt")                             \
    X(if_stmt, "tirx.IfThenElse")                           \
    X(iter_var, "tirx.IterVar")                             \
    X(prim_func, "tirx.PrimFunc")                           \
    X(target, "target.Target")                              \
    X(target_json, "target.TargetAsJSON")                   \
    X(target_with_host, "target.WithHost")                  \
    X(host_features, "tvm.codegen.llvm.GetHostCPUFeatures") \
    X(host_cpu, "target.llvm_get_system_cpu")               \
    X(llvm_intrinsic, "target.llvm_lookup_intrinsic_id")    \
    X(host_triple, "target.llvm_get_system_triple")         \
    X(run_pass, "transform.RunPass")                        \
    X(sequential, "transform.Sequential")                   \
    X(bind_target, "tirx.transform.BindTarget")             \
    X(filter, "tirx.transform.Filter")                      \
    X(skip_assert, "tirx.transform.SkipAssert")             \
    X(build_llvm, "target.build.llvm")                      \
    X(build_cuda, "target.build.cuda")                      \
    X(to_json, "ffi.ToJSONGraphString")                     \
    X(rpc_connect, "rpc.Connect")                           \
    X(rpc_load, "rpc.LoadRemoteModule")                     \
    X(rpc_index, "rpc.SessTableIndex")                      \
    X(tensor_alloc, "runtime.TVMTensorAllocWithScope")      \
    X(tensor_from_bytes, "runtime.TVMTensorCopyFromBytes")  \
    X(tensor_to_bytes, "runtime.TVMTensorCopyToBytes")      \
    X(time_evaluator, "runtime.RPCTimeEvaluator")

enum class Fn {
#define X(id, name) id,
    LOOPEGG_TVM_FUNCTIONS(X)
#undef X
        count
};

// Loads the libraries once and looks up every name above; UserError lists what is missing. Safe to call again.
void load();
const ffi::Function& function(Fn f);  // loads on first use
std::string version();                // "0.27.0.post1", part of every key of the latency store

// The registry knows no default arguments: all arguments must be given.
template <class... A>
Any call(Fn f, A&&... a) {
    return function(f)(std::forward<A>(a)...);
}
template <class... A>
Obj obj(Fn f, A&&... a) {
    return call(f, std::forward<A>(a)...).template cast<Obj>();
}

// TVM's message without the IR dump and stack trace that it carries.
std::string brief(const std::exception& e);

}  // namespace loopegg::tv
