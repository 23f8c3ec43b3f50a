#include "cli/plain_output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace loopegg {
namespace {

// C1 controls are two bytes of UTF-8, 0xC2 and one from 0x80 to 0x9F; the first may have come with the write before.
std::string plain(std::string_view text, bool& after_c2) {
    std::string out;
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
            out += fmt::format("\\x{:02x}", byte);
        else if (after_c2 && byte >= 0x80 && byte <= 0x9f)
            out += static_cast<char>(0xa4);  // a currency sign stands for it
        else
            out += c;
        after_c2 = byte == 0xc2;
    }
    return out;
}

ssize_t write_plain(void*, const char* bytes, std::size_t count) {
    static bool after_c2 = false;
    const std::string text = plain({bytes, count}, after_c2);
    for (std::string_view left = text; !left.empty();) {
        const ssize_t n = ::write(STDOUT_FILENO, left.data(), left.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return 0;  // what fopencookie takes for an error
        left.remove_prefix(static_cast<std::size_t>(n));
    }
    return static_cast<ssize_t>(count);
}

}  // namespace

void make_output_plain() {
    cookie_io_functions_t functions{};
    functions.write = write_plain;
    std::FILE* stream = ::fopencookie(nullptr, "w", functions);
    if (!stream) return;  // no memory: what follows will say so
    if (::isatty(STDOUT_FILENO)) std::setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
    stdout = stream;
}

}  // namespace loopegg
