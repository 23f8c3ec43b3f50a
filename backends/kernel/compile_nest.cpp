#include <algorithm>

#include "backends/kernel/kernel.hpp"
#include "backends/lower/codegen.hpp"
#include "backends/lower/lower_nest.hpp"
#include "base/error.hpp"

namespace loopegg {
namespace {

// The parameters in the order of a CUDA kernel's signature: "float* __restrict__ I_ptr, ...".
std::vector<int> argument_order(const std::string& source, const std::string& symbol, const std::vector<KernelBuffer>& parameters) {
    const auto open = source.find(symbol + "(");
    require(open != source.npos, "a CUDA source has its kernel");
    const std::string signature = source.substr(open, source.find(')', open) - open);
    std::vector<std::pair<std::size_t, int>> found;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        for (const char* end : {"_ptr,", "_ptr"})
            if (const auto at = signature.find(" " + parameters[i].name + end); at != signature.npos) {
                found.emplace_back(at, static_cast<int>(i));
                break;
            }
    std::sort(found.begin(), found.end());
    std::vector<int> order;
    for (const auto& [at, i] : found) order.push_back(i);
    return order;
}

std::string code_of(const LoweredNest& lowered, const Target& target, const std::string& name) {
    try {
        const tv::Obj machine = tv::obj(tv::Fn::target, target.tvm.dump());
        const tv::Obj module = tv::module_of({{name, lowered.function}});
        return target.gpu() ? tv::cuda_source(module, machine, tv::obj(tv::Fn::target, R"({"kind":"llvm"})")) : tv::object_code(module, machine);
    } catch (const tv::ffi::Error& e) {
        throw UserError("TVM refuses the nest: " + tv::brief(e));
    }
}

}  // namespace

Kernel compile_nest(const Term& nest, const Target& target, const std::string& name, std::string known) {
    const LoweredNest lowered = lower_nest(nest, target, name);
    Kernel kernel{
        target.gpu() ? name + "_kernel" : "__tvm_ffi_" + name, lowered.parameters, {}, lowered.launch, lowered.turns, std::move(known), lowered.units};
    if (kernel.code.empty()) kernel.code = code_of(lowered, target, name);
    for (std::size_t i = 0; i < lowered.parameters.size(); ++i) kernel.arguments.push_back(static_cast<int>(i));
    if (target.gpu()) kernel.arguments = argument_order(kernel.code, kernel.symbol, kernel.parameters);
    return kernel;
}

}  // namespace loopegg
