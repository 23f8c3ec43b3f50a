// Links relocatable objects and tables into a shared library, so that no network needs a compiler or a linker on its user's machine.
//
// It does what networks need: x86_64 and aarch64, position-independent code without C++ runtime, thread-local data, names of its own choice outside, and the
// functions of glibc with their versions. The library has no name of its own (DT_SONAME), because all networks would have the same one, and the loader takes
// libraries of one name for one library.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace loopegg {

// Bytes that the objects know by a name, with the addresses of other names in them.
struct LinkedData {
    std::string name, bytes;
    struct Pointer {
        std::size_t at;  // a multiple of 8
        std::string to;
        std::int64_t offset = 0;
    };
    std::vector<Pointer> pointers{};
    bool written = false;  // else it cannot be changed once the library is loaded
};

struct LinkRequest {
    std::vector<std::string_view> objects{};  // a name may be defined once, or weakly as often as one likes
    std::vector<LinkedData> data{};
    std::map<std::string, std::string> exported;  // the names outside, and what they are inside
};

// The bytes of the library. Throws Unlinkable (elf_object.hpp) with what an object needs and cannot have.
std::string link_shared_library(const LinkRequest& request);

}  // namespace loopegg
