#include "backends/scratch.hpp"

#include <unistd.h>

#include <atomic>

namespace loopegg {

ScratchFile::ScratchFile(const std::string& suffix) {
    static std::atomic<std::uint64_t> counter{0};
    path_ = std::filesystem::temp_directory_path() / ("loopegg-" + std::to_string(getpid()) + "-" + std::to_string(counter++) + suffix);
}
ScratchFile::~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
}

}  // namespace loopegg
