// A file descriptor that is closed with its owner.
#pragma once
#include <unistd.h>

#include <utility>

namespace loopegg {

struct OpenFile {
    int fd;  // -1: none

    explicit OpenFile(int opened) : fd(opened) {}
    OpenFile(OpenFile&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
    OpenFile& operator=(OpenFile&&) = delete;
    ~OpenFile() {
        if (fd >= 0) ::close(fd);
    }
};

}  // namespace loopegg
