// The functions of glibc that compiled networks may call: the library that has each, and the version of its interface that is asked for.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace loopegg {

struct GlibcFunction {
    const char *library, *version;
};

// For code of this machine (EM_X86_64 or EM_AARCH64). `library` is null for a function that is not in the table. The versions are the oldest with which the
// code is right, so that a network runs on machines with older libraries, too.
GlibcFunction glibc_function(std::uint16_t machine, std::string_view name);
std::vector<const char*> glibc_function_names();

}  // namespace loopegg
