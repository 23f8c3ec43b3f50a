#include "backends/kernel/kernel_shelf.hpp"

#include <unistd.h>

#include <cstring>

#include "base/scratch.hpp"
#include "backends/measure/thread_clocks.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"

namespace loopegg {

// A file is the seconds, as a double's bytes, then the code.
TimedKernel KernelShelf::compile(const Term& nest, const Target& target) const {
    const std::string name = "k" + Hasher().add(to_string(nest)).finish().hex().substr(0, 12);
    const std::filesystem::path file = folder_ / (name + "." + target.name);
    if (!folder_.empty() && std::filesystem::exists(file)) {
        const std::string bytes = read_file(file);
        TimedKernel found;
        std::memcpy(&found.seconds, bytes.data(), sizeof found.seconds);
        found.kernel = compile_nest(nest, target, name, bytes.substr(sizeof found.seconds));
        return found;
    }
    const double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    TimedKernel made{compile_nest(nest, target, name), 0};
    made.seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (!folder_.empty()) {
        std::string bytes(sizeof made.seconds, '\0');
        std::memcpy(bytes.data(), &made.seconds, sizeof made.seconds);
        const std::filesystem::path half = file.string() + "." + std::to_string(getpid());   // whoever is killed here leaves no half kernel
        write_scratch(half, bytes + made.kernel.code);
        std::filesystem::rename(half, file);
    }
    return made;
}

}  // namespace loopegg
