// TVM's share of the joints, apart from the rest because its headers are heavy.
#include <vector>

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/rvalue_ref.h>

namespace {

namespace ffi = tvm::ffi;
using Object = ffi::ObjectRef;
using Objects = ffi::Array<ffi::Any>;

template <class... A>
ffi::Any call(const std::string& name, A&&... a) {
    return ffi::Function::GetGlobalRequired(name)(std::forward<A>(a)...);
}
template <class... A>
Object make(const std::string& name, A&&... a) {
    return call(name, std::forward<A>(a)...).template cast<Object>();
}

const Object no_span{nullptr};

void load() {
    static bool done = false;
    if (done) return;
    for (auto [name, scope] : {std::pair{"/libtvm_runtime.so", RTLD_GLOBAL}, {"/libtvm_compiler.so", RTLD_LOCAL}})
        if (!dlopen((std::string(LOOPEGG_TVM_LIB) + name).c_str(), RTLD_NOW | scope)) throw std::runtime_error(dlerror());
    done = true;
}

DLDataType type(const char* name) { return ffi::StringToDLDataType(name); }

// 'main(in, out)' as TVM's own tensor expression, its one loop parallel.
Object module_of(int64_t n) {
    Object i = make("ir.Var", "i", make("ir.PrimType", type("int32")), no_span);
    Object range =
        make("ir.Range_from_min_extent", make("ir.IntImm", type("int32"), int64_t{0}, no_span), make("ir.IntImm", type("int32"), n, no_span), no_span);
    Object in = make("te.Placeholder", Objects{n}, make("ir.PrimType", type("float32")), "in");
    Object twice = make("prim._OpMul", make("te.TensorLoad", in, Objects{i}), make("ir.FloatImm", type("float32"), 2.0, no_span), no_span);
    Object body = make("prim._OpAdd", twice, make("ir.FloatImm", type("float32"), 1.0, no_span), no_span);
    Object out = make("te.OpGetOutput", make("te.ComputeOp", "out", "", nullptr, Objects{make("tirx.IterVar", range, i, 0, "", no_span)}, Objects{body}), 0);
    Object module = make("ir.Module_FromExpr", make("te.CreatePrimFunc", Objects{in, out}, nullptr), ffi::Map<ffi::Any, ffi::Any>{});
    Object schedule = make("s_tir.schedule.TracedSchedule", module, -1, 0, 0, true);
    Object block = make("s_tir.schedule.ScheduleGetSBlock", schedule, "out", nullptr);
    call("s_tir.schedule.ScheduleParallel", schedule, call("s_tir.schedule.ScheduleGetLoops", schedule, block).cast<Objects>()[0]);
    return make("s_tir.schedule.ScheduleGetMod", schedule);
}

Object run(const Object& pass, Object module) { return make("transform.RunPass", pass, ffi::RValueRef<Object>(std::move(module))); }

// The few passes that an element-wise loop needs; backends/ has the whole list.
Object lower(Object module, const Object& target) {
    module = run(make("tirx.transform.BindTarget", make("target.WithHost", target, target)), std::move(module));
    for (const char* pass :
         {"s_tir.transform.LowerInitBlock", "s_tir.transform.PlanAndUpdateBufferAllocationLocation", "s_tir.transform.ConvertBlocksToOpaque",
          "s_tir.transform.LowerOpaqueBlock", "tirx.transform.FlattenBuffer", "tirx.transform.StmtSimplify", "tirx.transform.AnnotateEntryFunc",
          "tirx.transform.SplitHostDevice", "tirx.transform.MakePackedAPI", "tirx.transform.LowerTVMBuiltin", "tirx.transform.LowerIntrin"})
        module = run(make(pass), std::move(module));
    return module;
}

}  // namespace

std::vector<float> joints_tvm_double_plus_one(const std::vector<float>& in) {
    load();
    std::vector<float> aligned_in(in.size() + 16), aligned_out(in.size() + 16);
    auto align = [](std::vector<float>& v) { return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64); };
    float *from = align(aligned_in), *to = align(aligned_out);
    std::copy(in.begin(), in.end(), from);

    Object target = make("target.Target", R"({"kind":"llvm"})");
    ffi::Module module = call("target.build.llvm", lower(module_of(static_cast<int64_t>(in.size())), target), target).cast<ffi::Module>();
    auto kernel = module->GetFunction("main");
    if (!kernel.has_value()) throw std::runtime_error("TVM built no function 'main'");
    int64_t shape[] = {static_cast<int64_t>(in.size())};
    DLTensor a{from, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0}, b{to, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
    (*kernel)(&a, &b);
    return {to, to + in.size()};
}
