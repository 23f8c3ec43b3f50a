#include "base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/regular_file.hpp"
#include "base/system_words.hpp"

namespace loopegg {
namespace fs = std::filesystem;
std::string read_file(const fs::path& path, std::uintmax_t max_bytes) {
    std::string bytes = read_part(path, 0, max_bytes + 1);
    if (bytes.size() > max_bytes) throw UserError(fmt::format("cannot read '{}': it is larger than {} bytes", path.string(), max_bytes));
    return bytes;
}

SourcePtr read_source(const fs::path& path, std::uintmax_t max_bytes) { return make_source(path.string(), read_file(path, max_bytes)); }

void write_file(const fs::path& path, std::string_view bytes) {
    refuse_special_file("write", path);  // a rename would put a file in the place of a device
    fs::path temporary = path;
    static std::atomic<unsigned> next{0};  // several threads may write one file: the last of them leaves it whole
    temporary += fmt::format(".{}.{}.tmp", ::getpid(), next++);
    ::unlink(temporary.c_str());  // what a killed process of the same number left, or a link that somebody laid there
    OpenFile file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
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
