#include "backends/kernel/elf_object.hpp"

#include <elf.h>
#include <cstring>

namespace loopegg {

template <class T>
std::vector<T> ElfObject::table(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T)) throw Unlinkable{"a table outside the object"};
    std::vector<T> all(count);
    if (count) std::memcpy(all.data(), bytes_.data() + offset, count * sizeof(T));
    return all;
}

ElfObject::ElfObject(std::string_view bytes) : bytes_(bytes) {
    if (bytes_.size() < sizeof header_) throw Unlinkable{"not an object"};
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_type != ET_REL)
        throw Unlinkable{"not an object"};
    sections_ = table<Elf64_Shdr>(header_.e_shoff, header_.e_shnum);
    for (const Elf64_Shdr& s : sections_)
        if (s.sh_type == SHT_SYMTAB) {
            symbols_ = table<Elf64_Sym>(s.sh_offset, s.sh_size / sizeof(Elf64_Sym));
            if (s.sh_link >= sections_.size()) throw Unlinkable{"no names"};
            names_ = content(sections_[s.sh_link]);
        }
}

std::string_view ElfObject::content(const Elf64_Shdr& s) const {
    if (s.sh_type == SHT_NOBITS) return {};
    if (s.sh_offset > bytes_.size() || s.sh_size > bytes_.size() - s.sh_offset) throw Unlinkable{"a section outside the object"};
    return bytes_.substr(s.sh_offset, s.sh_size);
}

std::string ElfObject::name(const Elf64_Sym& s) const {
    const std::string_view rest = s.st_name < names_.size() ? names_.substr(s.st_name) : std::string_view();
    return std::string(rest.substr(0, rest.find('\0')));
}

bool ElfObject::loaded(const Elf64_Shdr& s) {
    constexpr std::uint32_t unwind = 0x70000001;  // .eh_frame of compilers that mark it
    return (s.sh_flags & SHF_ALLOC) && s.sh_type != unwind && s.sh_type != SHT_NOTE;
}

std::vector<ElfObject::Relocations> ElfObject::relocations() const {
    std::vector<Relocations> found;
    for (const Elf64_Shdr& s : sections_) {
        if (s.sh_type == SHT_REL) throw Unlinkable{"relocations without addends"};
        if (s.sh_type != SHT_RELA || s.sh_info >= sections_.size() || !loaded(sections_[s.sh_info])) continue;
        found.push_back({s.sh_info, table<Elf64_Rela>(s.sh_offset, s.sh_size / sizeof(Elf64_Rela))});
        for (const Elf64_Rela& r : found.back().all)
            if (ELF64_R_SYM(r.r_info) >= symbols_.size() || r.r_offset >= sections_[s.sh_info].sh_size) throw Unlinkable{"a relocation outside its section"};
    }
    return found;
}

}  // namespace loopegg
