#include "backends/kernel/kernel_cache.hpp"

#include <unistd.h>
#include <cstring>
#include <optional>

#include "backends/measure/samples.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/places.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
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
    return once<TimedKernel>(kernels_, target.name + " " + to_string(nest), [&] { return pool_.compile(nest, target); });
}

std::filesystem::path runtime_object_file(const std::string& architecture) {
    const std::string name = "loopegg_runtime_" + architecture + ".o";
    return module_library(name, std::filesystem::path(runtime_objects_folder) / name);
}

std::filesystem::path KernelCache::runtime(const std::string& compiler) {
    return once<std::shared_ptr<ScratchFile>>(runtimes_, compiler,
                                              [&] {
                                                  auto object = std::make_shared<ScratchFile>(".o");
                                                  // What some systems harden by default calls functions that link_plan.cpp does not know.
                                                  std::vector<std::string> words{
                                                      compiler,    "-O2", "-std=gnu11",           "-fPIC", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-r",
                                                      "-nostdlib", "-o",  object->path().string()};
                                                  if (compiler.starts_with("aarch64")) words.push_back("-mno-outline-atomics");  // they are in libgcc
                                                  for (const char* file : runtime_files)
                                                      if (std::string_view(file).ends_with(".c"))
                                                          words.push_back(shipped(std::string("backends/runtime/") + file).string());
                                                  run_or_throw(words, "building the runtime");
                                                  return object;
                                              })
        ->path();
}

namespace {

std::string name_of(const Term& nest) { return "k" + Hasher().add(to_string(nest)).finish().hex().substr(0, 12); }

// A file holds the seconds, as the bytes of a double, then the code. A file that cannot be read, or was cut, counts as missing.
std::optional<TimedKernel> taken(const std::filesystem::path& file, const Term& nest, const Target& target, const std::string& name) {
    std::string bytes;
    try {
        bytes = read_file(file);
    } catch (const UserError&) {
        return std::nullopt;
    }
    TimedKernel found;
    if (bytes.size() <= sizeof found.seconds) return std::nullopt;
    std::memcpy(&found.seconds, bytes.data(), sizeof found.seconds);
    found.kernel = compile_nest(nest, target, name, bytes.substr(sizeof found.seconds));
    return found;
}

}  // namespace

TimedKernel KernelPool::compile(const Term& nest, const Target& target) const {
    const std::string name = name_of(nest);
    const std::filesystem::path file = folder_ / (name + "." + target.name);
    if (!folder_.empty() && std::filesystem::exists(file))
        if (auto found = taken(file, nest, target, name)) return *found;
    const double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    TimedKernel made{compile_nest(nest, target, name), 0};
    made.seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (!folder_.empty()) put(nest, target, made.kernel.code, made.seconds);
    return made;
}

void KernelPool::put(const Term& nest, const Target& target, const std::string& code, double seconds) const {
    const std::filesystem::path file = folder_ / (name_of(nest) + "." + target.name);
    std::string bytes(sizeof seconds, '\0');
    std::memcpy(bytes.data(), &seconds, sizeof seconds);
    const std::filesystem::path half = file.string() + "." + std::to_string(getpid());  // a process that is killed here leaves no half kernel
    std::error_code ignored;
    try {
        write_scratch(half, bytes + code);
        std::filesystem::rename(half, file, ignored);
    } catch (const UserError&) {  // the disk is full: the kernel is compiled again where it is needed
        std::filesystem::remove(half, ignored);
    }
}

}  // namespace loopegg
