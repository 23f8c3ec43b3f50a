#include "backends/lower/tvm_adapter.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/error.hpp"
#include "base/places.hpp"
#include "base/text.hpp"
#include "tvm_paths.hpp"

namespace loopegg::tv {
namespace {

constexpr std::array function_names{
#define X(id, name) name,
    LOOPEGG_TVM_FUNCTIONS(X)
#undef X
};

std::array<ffi::Function, static_cast<std::size_t>(Fn::count)> functions;
std::once_flag once;

void open(const char* name, int scope) {
    const std::filesystem::path path = package_file(std::string("tvm/lib/") + name, site_folder);
    if (!dlopen(path.c_str(), RTLD_NOW | scope))
        throw UserError(Diagnostic{"cannot load TVM: " + std::string(dlerror()),
                                   {},
                                   "run ./loopegg once to set it up, or point LOOPEGG_SITE at a folder that holds apache-tvm 0.27.0.post1"});
}

// The CUDA code generator asks for two functions that only TVM's Python side registers. fp32 needs no helper headers.
void register_cuda_hooks() {
    auto header = [](ffi::Array<ffi::String>) -> ffi::String { return ""; };
    auto no_intrinsic = [](ffi::String) -> ffi::Optional<ffi::Function> { return std::nullopt; };
    ffi::Function::SetGlobal("tirx.intrinsics.cuda.header_generator", ffi::Function::FromTyped(header), true);
    ffi::Function::SetGlobal("tirx.intrinsics.cuda.get_codegen", ffi::Function::FromTyped(no_intrinsic), true);
}

}  // namespace

void load() {
    std::call_once(once, [] {
        open("libtvm_runtime.so", RTLD_GLOBAL);  // before the compiler, and visible to it
        open("libtvm_compiler.so", RTLD_LOCAL);  // LibTorch must not see the LLVM inside
        std::vector<std::string> missing;
        for (std::size_t i = 0; i < functions.size(); ++i) {
            auto f = ffi::Function::GetGlobal(function_names[i]);
            if (f)
                functions[i] = *f;
            else
                missing.emplace_back(function_names[i]);
        }
        if (!missing.empty())
            throw UserError(Diagnostic{"this TVM is not the one that loopegg knows (0.27.0.post1): it lacks " + join(missing, ", "),
                                       {},
                                       "remove .deps/site and run ./loopegg once: it sets up the version that it knows"});
        register_cuda_hooks();
    });
}

const ffi::Function& function(Fn f) {
    load();
    return functions[static_cast<std::size_t>(f)];
}

std::string version() { return tvm_version; }

std::string brief(const std::exception& e) {
    std::string text = e.what();
    if (auto end = text.find("\n"); end != text.npos) text.resize(end);
    if (text.size() > 300) text = text.substr(0, 300) + "...";
    return text;
}

}  // namespace loopegg::tv
