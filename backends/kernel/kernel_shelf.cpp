#include "backends/kernel/kernel_shelf.hpp"

#include <unistd.h>

#include <cstring>
#include <optional>

#include "backends/measure/thread_clocks.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/scratch.hpp"

namespace loopegg {

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

TimedKernel KernelShelf::compile(const Term& nest, const Target& target) const {
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

void KernelShelf::put(const Term& nest, const Target& target, const std::string& code, double seconds) const {
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
