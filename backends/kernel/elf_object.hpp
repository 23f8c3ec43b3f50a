// A relocatable ELF object: its tables, which are checked to be inside the object.
#pragma once
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace loopegg {

// What only a real linker does, or an object that is no object.
struct Unlinkable {
    std::string why;
};

inline std::uint64_t aligned(std::uint64_t n, std::uint64_t to) { return to > 1 ? (n + to - 1) / to * to : n; }

class ElfObject {
public:
    explicit ElfObject(std::string_view bytes);  // throws Unlinkable

    std::uint16_t machine() const { return header_.e_machine; }
    const std::vector<Elf64_Shdr>& sections() const { return sections_; }
    const std::vector<Elf64_Sym>& symbols() const { return symbols_; }
    std::string_view content(const Elf64_Shdr& section) const;
    std::string name(const Elf64_Sym& symbol) const;

    // Sections that are in memory when the code runs, but for tables that only debuggers and exceptions read.
    static bool loaded(const Elf64_Shdr& section);

    struct Relocations {
        std::size_t section;  // that they are for
        std::vector<Elf64_Rela> all;
    };
    std::vector<Relocations> relocations() const;  // of loaded sections; places and symbols are inside their tables

private:
    template <class T>
    std::vector<T> table(std::uint64_t offset, std::uint64_t count) const;

    std::string_view bytes_, names_;
    Elf64_Ehdr header_{};
    std::vector<Elf64_Shdr> sections_;
    std::vector<Elf64_Sym> symbols_;
    std::string_view section_names_;
};

// What machine an ELF file is for.

// "x86_64", "aarch64", "sm_61" (of a cubin); throws UserError when the bytes are no ELF file.
std::string elf_architecture(std::string_view bytes);
std::string native_architecture();

}  // namespace loopegg
