#include "base/scratch.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/system_words.hpp"

namespace loopegg {

namespace {

// Nobody else may write there, so no name in it is ever somebody's link to somewhere else.
class PrivateFolder {
public:
    PrivateFolder() {
        std::error_code error;
        const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
        if (error) fail_system("use the folder for temporary files", std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp", error.value());
        std::string name = (parent / "loopegg-XXXXXX").string();
        if (fault_here(FaultPlace::write) ? (errno = ENOSPC, true) : !::mkdtemp(name.data()))
            fail_system("make a folder for temporary files in", parent, errno);
        path_ = name;
    }
    ~PrivateFolder() {
        std::error_code ignored;
        if (getpid() == owner_) std::filesystem::remove_all(path_, ignored);  // a forked child leaves it
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
    pid_t owner_ = getpid();
};

}  // namespace

ScratchFile::ScratchFile(const std::string& suffix) {
    static std::atomic<std::uint64_t> counter{0};
    static const PrivateFolder folder;
    path_ = folder.path() / (std::to_string(counter++) + suffix);
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
    errno = 0;
    std::ofstream out(path, std::ios::binary);
    const FaultHow fault = ask_fault(FaultPlace::write);
    out.write(bytes.data(), static_cast<std::streamsize>(fault == FaultHow::none ? bytes.size() : bytes.size() / 2));
    const bool written = static_cast<bool>(out.flush());
    if (fault == FaultHow::cut) cut_now();
    if (fault == FaultHow::fail || !written) fail_system("write", path, fault == FaultHow::fail ? ENOSPC : errno ? errno : EIO);
}

}  // namespace loopegg
