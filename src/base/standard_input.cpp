#include "base/standard_input.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/system_words.hpp"

namespace loopegg {

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
