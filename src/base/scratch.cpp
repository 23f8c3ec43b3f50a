#include "base/scratch.hpp"

#include <unistd.h>

#include <atomic>
#include <fstream>

#include "base/error.hpp"

namespace loopegg {

ScratchFile::ScratchFile(const std::string& suffix) {
    static std::atomic<std::uint64_t> counter{0};
    path_ = std::filesystem::temp_directory_path() / ("loopegg-" + std::to_string(getpid()) + "-" + std::to_string(counter++) + suffix);
}
ScratchFile::~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
}

ScratchFolder::ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
}
ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

void write_scratch(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw UserError("cannot write " + path.string());
}

}  // namespace loopegg
