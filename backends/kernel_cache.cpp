#include "backends/kernel_cache.hpp"

#include "base/hash.hpp"

namespace loopegg {

Kernel KernelCache::compile(const Term& nest, const Target& target) {
    const std::string text = to_string(nest), key = target.name + " " + text;
    {
        std::lock_guard lock(mutex_);
        if (const auto it = known_.find(key); it != known_.end()) return it->second;
    }
    Kernel kernel = compile_nest(nest, target, "k" + Hasher().add(text).finish().hex().substr(0, 12));
    std::lock_guard lock(mutex_);
    return known_.try_emplace(key, std::move(kernel)).first->second;
}

}  // namespace loopegg
