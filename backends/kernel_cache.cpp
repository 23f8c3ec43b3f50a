#include "backends/kernel_cache.hpp"

#include "backends/thread_clocks.hpp"
#include "base/hash.hpp"

namespace loopegg {

KernelCache::Entry KernelCache::compile(const Term& nest, const Target& target) {
    const std::string text = to_string(nest);
    std::packaged_task<Entry()> task([&] {
        const double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
        Kernel kernel = compile_nest(nest, target, "k" + Hasher().add(text).finish().hex().substr(0, 12));
        return Entry{std::move(kernel), clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start};
    });
    bool fresh = false;
    std::shared_future<Entry> entry;
    {
        std::lock_guard lock(mutex_);
        const auto [it, first] = known_.try_emplace(target.name + " " + text);
        if (first) it->second = task.get_future().share();
        entry = it->second, fresh = first;
    }
    if (fresh) task();
    return entry.get();
}

}  // namespace loopegg
