#include "base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/system_words.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

struct File {
    int fd;
    ~File() {
        if (fd >= 0) ::close(fd);
    }
};

const char* kind_of(mode_t mode) {
    switch (mode & S_IFMT) {
        case S_IFDIR: return "a directory";
        case S_IFIFO: return "a pipe";
        case S_IFSOCK: return "a socket";
        case S_IFCHR:
        case S_IFBLK: return "a device";
        default: return "no file";
    }
}

// Asked before a file is opened, for opening a device may do something; and after, for the name may lead elsewhere by then.
void expect_regular(const char* doing, const fs::path& path, const struct stat& about) {
    if (S_ISREG(about.st_mode)) return;
    throw UserError(fmt::format("cannot {} '{}': it is {}, expected a file", doing, path.string(), kind_of(about.st_mode)));
}

File open_to_read(const fs::path& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0) expect_regular("read", path, about);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) fail_system("read", path, errno);
    File file{fd};
    if (::fstat(fd, &about) != 0) fail_system("read", path, errno);
    expect_regular("read", path, about);
    return File{std::exchange(file.fd, -1)};
}

// Up to `most` bytes from where the file stands.
std::string read_up_to(const File& file, const fs::path& path, std::uintmax_t most) {
    std::string bytes, buffer(1 << 16, '\0');
    struct stat about {};
    if (::fstat(file.fd, &about) == 0) bytes.reserve(std::min(static_cast<std::uintmax_t>(about.st_size), most));
    while (bytes.size() < most) {
        const ssize_t n = ::read(file.fd, buffer.data(), std::min<std::uintmax_t>(buffer.size(), most - bytes.size()));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_system("read", path, errno);
        if (n == 0) break;
        bytes.append(buffer, 0, static_cast<std::size_t>(n));
    }
    return bytes;
}

}  // namespace

std::string read_file(const fs::path& path, std::uintmax_t max_bytes) {
    std::string bytes = read_up_to(open_to_read(path), path, max_bytes + 1);
    if (bytes.size() > max_bytes) throw UserError(fmt::format("cannot read '{}': it is larger than {} bytes", path.string(), max_bytes));
    return bytes;
}

std::string read_part(const fs::path& path, std::uintmax_t offset, std::uintmax_t most) {
    const File file = open_to_read(path);
    if (::lseek(file.fd, static_cast<off_t>(offset), SEEK_SET) < 0) fail_system("read", path, errno);
    return read_up_to(file, path, most);
}

void refuse_special_file(const char* doing, const fs::path& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0) expect_regular(doing, path, about);
}

SourcePtr read_source(const fs::path& path, std::uintmax_t max_bytes) { return make_source(path.string(), read_file(path, max_bytes)); }

void write_file(const fs::path& path, std::string_view bytes) {
    refuse_special_file("write", path);  // a rename would put a file in the place of a device
    fs::path temporary = path;
    static std::atomic<unsigned> next{0};  // several threads may write one file: the last of them leaves it whole
    temporary += fmt::format(".{}.{}.tmp", ::getpid(), next++);
    ::unlink(temporary.c_str());  // what a killed process of the same number left, or a link that somebody laid there
    File file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (file.fd < 0) fail_system("write", path, errno);
    auto give_up = [&](int error) {
        ::unlink(temporary.c_str());
        fail_system("write", path, error);
    };
    const FaultHow fault = ask_fault(FaultPlace::write);
    if (fault != FaultHow::none) bytes = bytes.substr(0, bytes.size() / 2);
    while (!bytes.empty()) {
        ssize_t n = ::write(file.fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) give_up(errno);
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    if (fault == FaultHow::cut) cut_now();
    if (fault == FaultHow::fail) give_up(ENOSPC);
    if (::fsync(file.fd) != 0 && errno != EINVAL && errno != EROFS) give_up(errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) give_up(errno);
}

}  // namespace loopegg
