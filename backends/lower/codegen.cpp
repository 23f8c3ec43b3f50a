#include "backends/lower/codegen.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include <tvm/ffi/reflection/accessor.h>

#include "base/error.hpp"

namespace loopegg::tv {
namespace {

Obj pass(const char* name) { return ffi::Function::GetGlobalRequired(name)().cast<Obj>(); }
template <class A>
Obj pass(const char* name, A argument) {
    return ffi::Function::GetGlobalRequired(name)(argument).template cast<Obj>();
}

// The passes of TVM's own pipeline. The pass that rewrites storage is for GPUs alone: on CPUs it would forget which storage belongs on the stack.
List main_passes(bool gpu) {
    List p;
    for (const char* n : {"s_tir.transform.CanonicalizeLoop", "s_tir.transform.LowerCrossThreadReduction", "s_tir.transform.LowerInitBlock",
                          "s_tir.transform.PlanAndUpdateBufferAllocationLocation", "s_tir.transform.ConvertBlocksToOpaque", "s_tir.transform.LiftThreadBinding",
                          "s_tir.transform.ManifestSharedMemoryLocalStage"})
        p.push_back(pass(n));
    p.push_back(pass("s_tir.transform.CompactBufferAllocation", true));
    for (const char* n :
         {"s_tir.transform.LowerAutoCopy", "s_tir.transform.UnifyThreadBinding", "s_tir.transform.LowerMatchBuffer", "s_tir.transform.StmtSimplify",
          "s_tir.transform.InjectPermutedLayout", "s_tir.transform.AnnotateIrregularLoop", "s_tir.transform.InjectSoftwarePipeline",
          "s_tir.transform.TransformMmaBufferLayout", "s_tir.transform.LowerOpaqueBlock", "tirx.transform.FlattenBuffer", "tirx.transform.BF16ComputeLegalize"})
        p.push_back(pass(n));
    p.push_back(pass("tirx.transform.NarrowDataType", 32));
    p.push_back(pass("s_tir.transform.LoopPartition"));
    p.push_back(pass("tirx.transform.VectorizeLoop", true));
    for (const char* n : {"s_tir.transform.InjectVirtualThread", "s_tir.transform.InjectDoubleBuffer"}) p.push_back(pass(n));
    if (gpu) p.push_back(pass("tirx.transform.StorageRewrite"));
    for (const char* n :
         {"s_tir.transform.HoistIfThenElse", "tirx.transform.UnrollLoop", "s_tir.transform.RenormalizeSplitPattern", "tirx.transform.StmtSimplify",
          "tirx.transform.RemoveNoOp", "s_tir.transform.RewriteUnsafeSelect", "tirx.transform.CommonSubexprElim"})
        p.push_back(pass(n));
    p.push_back(pass("tirx.transform.FP8ComputeLegalize", "float32"));
    p.push_back(pass("s_tir.transform.VerifyVTCMLimit", nullptr));
    for (const char* n : {"s_tir.transform.LowerVtcmAlloc", "tirx.transform.VerifyMemory", "tirx.transform.AnnotateEntryFunc"}) p.push_back(pass(n));
    for (const char* scope : {"shared", "shared.dyn", "warp"}) p.push_back(pass("s_tir.transform.ThreadSync", scope));
    for (const char* n :
         {"s_tir.transform.InferFragment", "s_tir.transform.LowerThreadAllreduce", "s_tir.transform.MergeSharedMemoryAllocations",
          "tirx.transform.SplitHostDevice", "tirx.transform.MakePackedAPI", "tirx.transform.FP8StorageLegalize", "tirx.transform.BF16StorageLegalize"})
        p.push_back(pass(n));
    return p;
}

// The function that kernels for tensor cores call. The emulator has its own.
const std::string tensor_cores = R"(#ifdef __CUDACC__
static __device__ __forceinline__ float loopegg_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}
static __device__ __forceinline__ void loopegg_mma_tf32(float* c0, float* c1, float* c2, float* c3, float a0, float a1, float a2, float a3, float b0,
                                                        float b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)
                 : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)),
                   "r"(__float_as_uint(b1)));
}
static __device__ __forceinline__ float loopegg_pack_fp16(float low, float high) {
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return __uint_as_float(word);
}
static __device__ __forceinline__ float loopegg_pack_bf16(float low, float high) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return __uint_as_float(word);
}
#define LOOPEGG_MMA_OF_WORDS(kind, type)                                                                                                                   \
    static __device__ __forceinline__ void loopegg_mma_##kind(float* c0, float* c1, float* c2, float* c3, float a0, float a1, float a2, float a3, float b0, \
                                                              float b1) {                                                                                  \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"         \
                     : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)                                                                                          \
                     : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)),   \
                       "r"(__float_as_uint(b1)));                                                                                                          \
    }
LOOPEGG_MMA_OF_WORDS(fp16, "f16")
LOOPEGG_MMA_OF_WORDS(bf16, "bf16")
#endif
)";

Obj sequential(const List& passes) { return obj(Fn::sequential, passes, 0, "loopegg", ffi::Array<ffi::String>{}, false); }
Obj apply(const Obj& p, Obj module) { return obj(Fn::run_pass, p, ffi::RValueRef<Obj>(std::move(module))); }

bool is_host(const Obj& f) {
    ffi::reflection::FieldGetter attrs("ir.BaseFunc", "attrs");
    auto all = call(Fn::attrs_dict, attrs(f).cast<Obj>()).cast<ffi::Map<ffi::String, Any>>();
    const std::string json = call(Fn::target_json, all.at("target")).cast<ffi::String>();
    for (const char* kind : {"llvm", "c", "cuda_host"})
        for (const char* colon : {"\"kind\":\"", "\"kind\": \""})
            if (json.find(colon + std::string(kind) + "\"") != json.npos) return true;
    return false;
}
Obj keep(const Obj& module, bool host) {
    return apply(obj(Fn::filter, ffi::Function::FromTyped([host](Obj f) -> bool { return is_host(f) == host; })), module);
}

}  // namespace

Lowered lower(Obj module, const Obj& target, const Obj& host) {
    load();
    module = apply(obj(Fn::bind_target, obj(Fn::target_with_host, target, host)), std::move(module));
    static thread_local const Obj on_cpus = sequential(main_passes(false)), on_gpus = sequential(main_passes(true));
    static thread_local const Obj on_host =
        sequential({pass("tirx.transform.LowerTVMBuiltin"), pass("tirx.transform.LowerIntrin"), pass("tirx.transform.SkipAssert")});
    static thread_local const Obj on_device =
        sequential({pass("tirx.transform.LowerWarpMemory"), pass("tirx.transform.StmtSimplify"), pass("tirx.transform.LowerIntrin")});
    module = apply(target.same_as(host) ? on_cpus : on_gpus, std::move(module));
    return {apply(on_host, keep(module, true)), apply(on_device, keep(module, false))};
}

std::string object_of(const Obj& lowered, const Obj& target) {
    const auto built = call(Fn::build_llvm, lowered, target).cast<ffi::Module>();
    const int file = memfd_create("object", MFD_CLOEXEC);  // TVM writes only to a path; this one is in memory, not on a disk
    if (file < 0) throw UserError(std::string("no memory for an object: ") + std::strerror(errno));
    std::string bytes;
    try {
        built->WriteToFile("/proc/self/fd/" + std::to_string(file), "o");
        struct stat facts {};
        fstat(file, &facts);
        bytes.resize(static_cast<std::size_t>(facts.st_size));
        for (std::size_t at = 0; at < bytes.size();) {
            const ssize_t n = pread(file, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
            require(n > 0, "an object is read back");
            at += static_cast<std::size_t>(n);
        }
    } catch (...) {
        close(file);
        throw;
    }
    close(file);
    return bytes;
}
std::string object_code(const Obj& module, const Obj& target) { return object_of(lower(module, target, target).host, target); }

std::string cuda_source(const Obj& module, const Obj& target, const Obj& host) {
    const Obj device = lower(module, target, host).device;
    const std::string text(call(Fn::build_cuda, device, target).cast<ffi::Module>()->InspectSource("cuda"));
    return text.find("loopegg_mma_") == text.npos ? text : tensor_cores + text;
}

}  // namespace loopegg::tv
