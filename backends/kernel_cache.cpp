#include "backends/kernel_cache.hpp"

#include <ctime>

#include "base/hash.hpp"

namespace loopegg {
namespace {

double thread_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

KernelCache::Entry KernelCache::compile(const Term& nest, const Target& target) {
    const std::string text = to_string(nest);
    std::packaged_task<Entry()> task([&] {
        const double start = thread_seconds();
        Kernel kernel = compile_nest(nest, target, "k" + Hasher().add(text).finish().hex().substr(0, 12));
        return Entry{std::move(kernel), thread_seconds() - start};
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
