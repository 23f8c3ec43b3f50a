// Writes random nests as TVM modules (JSON) next to what our own lowering and code generation make of them; drift.py builds the same
// modules with TVM's Python and compares the texts.
//   bench_drift FOLDER [COUNT]
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "backends/lower/codegen.hpp"
#include "backends/lower/lower_nest.hpp"
#include "backends/lower/random_nest.hpp"
#include "base/error.hpp"
#include "base/files.hpp"

using namespace loopegg;

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: bench_drift FOLDER [COUNT]\n"), 2;
    const std::filesystem::path folder = argv[1];
    const int count = argc > 2 ? std::atoi(argv[2]) : 20;
    std::filesystem::create_directories(folder);
    int written = 0;
    for (const char* name : {"i7", "a57", "gtx1080ti", "h200"}) {
        const Target target = find_target(name);
        const tv::Obj machine = tv::obj(tv::Fn::target, target.tvm.dump());
        for (int i = 0; i < count; ++i) try {
                const tv::Obj module = tv::module_of({{"k", lower_nest(random_nest(static_cast<std::uint64_t>(i), target.gpu()), target, "k").function}});
                const std::string stem = fmt::format("{}-{:03}", name, i);
                write_file(folder / (stem + ".json"), std::string(tv::call(tv::Fn::to_json, module, nullptr).cast<tv::ffi::String>()));
                write_file(folder / (stem + ".target"), target.tvm.dump());
                if (target.gpu())
                    write_file(folder / (stem + ".cu"), tv::cuda_source(module, machine, tv::obj(tv::Fn::target, R"({"kind":"llvm"})")));
                else
                    tv::call(tv::Fn::build_llvm, tv::lower(module, machine, machine).host, machine)
                        .cast<tv::ffi::Module>()
                        ->WriteToFile((folder / (stem + ".ll")).string(), "ll");
                ++written;
            } catch (const UserError&) {  // not every random nest can be bound to threads
            }
    }
    std::printf("%d modules in %s\n", written, folder.c_str());
}
