// Which processor an ELF file is for. Apart from elf_object.cpp, because the worker of a board reads objects without the program's errors.
#include <elf.h>

#include <cstring>

#include "backends/kernel/elf_object.hpp"
#include "base/error.hpp"

namespace loopegg {

std::string elf_architecture(std::string_view bytes) {
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header || bytes.substr(0, 4) !=
                                            "\x7f"
                                            "ELF")
        throw UserError("not an ELF file");
    std::memcpy(&header, bytes.data(), sizeof header);
    constexpr Elf64_Half cuda = 190;
    if (header.e_machine == EM_X86_64) return "x86_64";
    if (header.e_machine == EM_AARCH64) return "aarch64";
    // The low byte of a cubin's flags is its architecture. From ABI version 8 on, it is the second byte.
    if (header.e_machine == cuda) return "sm_" + std::to_string(header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff);
    return "machine " + std::to_string(header.e_machine);
}

std::string native_architecture() {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "unknown";
#endif
}

}  // namespace loopegg
