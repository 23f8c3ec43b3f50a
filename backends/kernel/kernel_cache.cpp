#include "backends/kernel/kernel_cache.hpp"

#include "base/places.hpp"
#include "base/process.hpp"
#include "runtime_objects.hpp"

namespace loopegg {

template <class Made>
Made KernelCache::once(std::map<std::string, std::shared_future<Made>>& known, const std::string& key, std::function<Made()> make) {
    std::packaged_task<Made()> task(std::move(make));
    bool fresh = false;
    std::shared_future<Made> entry;
    {
        std::lock_guard lock(mutex_);
        const auto [it, first] = known.try_emplace(key);
        if (first) it->second = task.get_future().share();
        entry = it->second, fresh = first;
    }
    if (fresh) task();
    return entry.get();
}

TimedKernel KernelCache::compile(const Term& nest, const Target& target) {
    return once<TimedKernel>(kernels_, target.name + " " + to_string(nest), [&] { return shelf_.compile(nest, target); });
}

std::filesystem::path runtime_object_file(const std::string& architecture) {
    const std::string name = "loopegg_runtime_" + architecture + ".o";
    return module_library(name, std::filesystem::path(runtime_objects_folder) / name);
}

std::filesystem::path KernelCache::runtime(const std::string& compiler) {
    return once<std::shared_ptr<ScratchFile>>(runtimes_, compiler,
                                              [&] {
                                                  auto object = std::make_shared<ScratchFile>(".o");
                                                  std::vector<std::string> words{compiler, "-O2",       "-std=gnu11", "-fPIC",
                                                                                 "-r",     "-nostdlib", "-o",         object->path().string()};
                                                  if (compiler.starts_with("aarch64")) words.push_back("-mno-outline-atomics");  // they lie in libgcc
                                                  for (const char* file : runtime_files)
                                                      if (std::string_view(file).ends_with(".c"))
                                                          words.push_back(shipped(std::string("backends/runtime/") + file).string());
                                                  run_or_throw(words, "building the runtime");
                                                  return object;
                                              })
        ->path();
}

}  // namespace loopegg
