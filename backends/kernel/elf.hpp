// What machine an ELF file is for.
#pragma once
#include <string>
#include <string_view>

namespace loopegg {

// "x86_64", "aarch64", "sm_61" (of a cubin); throws UserError when the bytes are no ELF file.
std::string elf_architecture(std::string_view bytes);
std::string native_architecture();

}  // namespace loopegg
