#include "base/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/system_words.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

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

OpenFile open_to_read(const fs::path& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0) expect_regular("read", path, about);
    OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file.fd < 0) fail_system("read", path, errno);
    if (::fstat(file.fd, &about) != 0) fail_system("read", path, errno);
    expect_regular("read", path, about);
    return file;
}

// Up to `most` bytes from where the file is.
std::string read_up_to(const OpenFile& file, const fs::path& path, std::uintmax_t most) {
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

std::string read_part(const fs::path& path, std::uintmax_t offset, std::uintmax_t most) {
    const OpenFile file = open_to_read(path);
    if (offset > 0 && ::lseek(file.fd, static_cast<off_t>(offset), SEEK_SET) < 0) fail_system("read", path, errno);
    return read_up_to(file, path, most);
}

void refuse_special_file(const char* doing, const fs::path& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0) expect_regular(doing, path, about);
}

std::string read_standard_input() {
    std::string bytes, buffer(1 << 16, '\0');
    struct stat about {};
    if (::fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode)) bytes.reserve(static_cast<std::size_t>(about.st_size));
    while (true) {
        const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_system("read", "standard input", errno);
        if (n == 0) return bytes;
        bytes.append(buffer, 0, static_cast<std::size_t>(n));
    }
}

}  // namespace loopegg
