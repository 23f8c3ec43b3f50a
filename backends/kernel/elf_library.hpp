// A shared library as a file: its sections and segments, which get their addresses here, and the tables by which the loader finds names.
#pragma once
#include <elf.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace loopegg {

// In the order of the file: what is read, code, what is written, and what only tools read.
enum SectionName { null, dynsym, dynstr, hash, versym, verneed, rela, rodata, text, dynamic, got, data, tbss, bss, symtab, strtab, shstrtab, section_count };

class ElfLibrary {
public:
    explicit ElfLibrary(std::uint16_t machine);

    struct Section {
        const char* name = "";
        std::uint32_t type = SHT_NULL;
        std::uint64_t flags = 0, alignment = 1, entry_size = 0;
        SectionName link = null;
        std::string bytes{};
        std::uint64_t size = 0, address = 0, offset = 0;  // the size of bytes, or of zeros that are not in the file
        std::uint32_t info = 0;
    };
    Section& operator[](SectionName name) { return sections_[name]; }
    const Section& operator[](SectionName name) const { return sections_[name]; }

    // Makes room at the end of a section, with this alignment, and gives its offset in the section.
    std::uint64_t add(SectionName to, std::string_view bytes, std::uint64_t alignment);
    std::uint64_t add_zeros(SectionName to, std::uint64_t size, std::uint64_t alignment);
    void give_addresses();  // to sections whose sizes are known
    std::string file() const;

    template <class T>
    static std::string_view bytes_of(const T& value) {
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }

private:
    std::vector<Elf64_Phdr> segments() const;
    Elf64_Phdr segment(SectionName first, SectionName last, std::uint32_t flags) const;

    std::uint16_t machine_;
    std::uint64_t page_;
    std::array<Section, section_count> sections_;
};

// A name that the loader finds: an imported function, or one of the library's own.
struct DynamicName {
    std::string name;
    const char *library = nullptr, *version = nullptr;  // of an imported function
    SectionName section = null;                         // of the library's own
    std::uint64_t address = 0, size = 0;                // of the library's own, once addresses are given
};

// Names, versions and the room of all tables of the loader, before addresses are given; `relocations` says how many there will be. The first name is the
// dynamic symbol 1.
void add_dynamic_tables(ElfLibrary& library, const std::vector<DynamicName>& names, std::size_t relocations);
void write_dynamic_tables(ElfLibrary& library, const std::vector<DynamicName>& names);  // once they are

}  // namespace loopegg
