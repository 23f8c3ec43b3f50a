#include "backends/codegen.hpp"
#include "backends/kernel.hpp"
#include "backends/lower_nest.hpp"
#include "base/error.hpp"

namespace loopegg {

Kernel compile_nest(const Term& nest, const Target& target, const std::string& name) {
    const LoweredNest lowered = lower_nest(nest, target, name);
    Kernel kernel{"", lowered.parameters, lowered.launch, ""};
    try {
        const tv::Obj machine = tv::obj(tv::Fn::target, target.tvm.dump());
        const tv::Obj module = tv::module_of({{name, lowered.function}});
        if (target.gpu()) {
            kernel.symbol = name + "_kernel";
            kernel.code = tv::cuda_source(module, machine, tv::obj(tv::Fn::target, R"({"kind":"llvm"})"));
        } else {
            kernel.symbol = "__tvm_ffi_" + name;
            kernel.code = tv::object_code(module, machine);
        }
    } catch (const tv::ffi::Error& e) {
        throw UserError("TVM refuses the nest: " + tv::brief(e));
    }
    return kernel;
}

}  // namespace loopegg
