#include "base/scratch.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/system_words.hpp"

namespace loopegg {

namespace {

namespace fs = std::filesystem;

constexpr const char* private_prefix = "loopegg-private-";

// The lock on a private folder. It is had as long as its process lives, so whoever can have it later knows that the folder is nobody's any more.
class ScratchLock {
public:
    explicit ScratchLock(const fs::path& folder) : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
        struct stat ours {
        }, there{};
        locked_ = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
        elsewhere_ = fd_ >= 0 && !locked_ && errno == EWOULDBLOCK;
        if (::lstat(folder.c_str(), &there) != 0)
            gone_ = errno == ENOENT;
        else if (fd_ >= 0 && ::fstat(fd_, &ours) == 0)
            gone_ = ours.st_ino != there.st_ino || ours.st_dev != there.st_dev, mine_ = ours.st_uid == ::getuid();
    }
    ~ScratchLock() {
        if (fd_ >= 0) ::close(fd_);
    }
    ScratchLock(const ScratchLock&) = delete;
    ScratchLock& operator=(const ScratchLock&) = delete;
    bool left_behind() const { return locked_ && mine_ && !gone_; }
    bool taken_away() const { return elsewhere_ || gone_; }

private:
    int fd_;
    bool locked_ = false, elsewhere_ = false, gone_ = false, mine_ = false;
};

// Removes what processes that were killed left of their private folders.
void clear_left_behind(const fs::path& parent) {
    std::error_code ignored;
    std::vector<fs::path> found;
    for (fs::directory_iterator it(parent, ignored), end; !ignored && it != end; it.increment(ignored))
        if (it->path().filename().string().starts_with(private_prefix)) found.push_back(it->path());
    for (const fs::path& folder : found)
        if (const ScratchLock lock(folder); lock.left_behind()) fs::remove_all(folder, ignored);
}

// Nobody else may write there, so no name in it is ever somebody's link to somewhere else.
class PrivateFolder {
public:
    PrivateFolder() {
        std::error_code error;
        const fs::path parent = fs::temp_directory_path(error);
        if (error) fail_system("use the folder for temporary files", std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp", error.value());
        clear_left_behind(parent);
        do {  // another process may take a folder that is not locked yet for one that was left behind
            std::string name = (parent / (private_prefix + std::string("XXXXXX"))).string();
            if (fault_here(FaultPlace::write) ? (errno = ENOSPC, true) : !::mkdtemp(name.data()))
                fail_system("make a folder for temporary files in", parent, errno);
            path_ = name;
            lock_.emplace(path_);
        } while (lock_->taken_away());
    }
    ~PrivateFolder() {
        std::error_code ignored;
        if (getpid() != owner_) return;  // a forked child leaves it
        fs::remove_all(path_, ignored);
        clear_left_behind(path_.parent_path());  // of workers that this process has killed
    }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
    std::optional<ScratchLock> lock_;
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
