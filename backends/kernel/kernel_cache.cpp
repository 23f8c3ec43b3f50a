#include "backends/kernel/kernel_cache.hpp"

#include "base/places.hpp"
#include "base/process.hpp"

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

std::filesystem::path KernelCache::runtime(const std::string& compiler) {
    return once<std::shared_ptr<ScratchFile>>(runtimes_, compiler,
                                              [&] {
                                                  auto object = std::make_shared<ScratchFile>(".o");
                                                  run_or_throw({compiler, "-O2", "-std=gnu11", "-fPIC", "-c",
                                                                shipped("backends/runtime/loopegg_runtime.c").string(), "-o", object->path().string()},
                                                               "building the runtime");
                                                  return object;
                                              })
        ->path();
}

}  // namespace loopegg
