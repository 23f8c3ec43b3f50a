// Opening files for reading: regular ones alone. A pipe keeps its reader waiting, and a device has no end.
#pragma once
#include <unistd.h>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace loopegg {

// Gives the bytes from `offset` on, at most `most` of them, and fewer where the file ends. Throws UserError in words that a person can act on: missing,
// a directory, a pipe, not readable. read_file (files.hpp) reads a whole file so.
std::string read_part(const std::filesystem::path& path, std::uintmax_t offset, std::uintmax_t most);

// Throws UserError where the path leads to something that is there and no regular file. It is for files that other libraries open; `doing` is "read".
void refuse_special_file(const char* doing, const std::filesystem::path& path);

// A file descriptor that is closed with its owner.
struct OpenFile {
    int fd;  // -1: none

    explicit OpenFile(int opened) : fd(opened) {}
    OpenFile(OpenFile&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
    OpenFile& operator=(OpenFile&&) = delete;
    ~OpenFile() {
        if (fd >= 0) ::close(fd);
    }
};

// All of standard input at once: std::cin would give it byte by byte, which costs seconds for the weights of one network.

// Throws UserError where standard input cannot be read.
std::string read_standard_input();

}  // namespace loopegg
