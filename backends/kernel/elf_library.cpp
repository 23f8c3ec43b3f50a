#include "backends/kernel/elf_library.hpp"

#include <algorithm>
#include <set>

#include "backends/kernel/elf_object.hpp"

namespace loopegg {
namespace {

constexpr std::size_t segment_count = 6, header_bytes = sizeof(Elf64_Ehdr) + segment_count * sizeof(Elf64_Phdr);

std::uint32_t system_v_hash(const std::string& name) {  // of System V
    std::uint32_t h = 0;
    for (unsigned char c : name) {
        h = (h << 4) + c;
        const std::uint32_t high = h & 0xf0000000;
        h = (h ^ high >> 24) & ~high;
    }
    return h;
}

// The place of a text among the strings of a section; it is added where it is not there.
std::uint32_t string_at(ElfLibrary& library, SectionName in, const std::string& text) {
    std::string& all = library[in].bytes;
    const std::size_t found = all.find(text + '\0');
    if (found != std::string::npos && (found == 0 || all[found - 1] == '\0')) return static_cast<std::uint32_t>(found);
    all += text + '\0';
    library[in].size = all.size();
    return static_cast<std::uint32_t>(all.size() - text.size() - 1);
}

constexpr std::size_t other_dynamic_entries = 13;  // besides those of the libraries that are needed

using Versions = std::map<std::string, std::set<std::string>>;  // by library

Versions versions_of(const std::vector<DynamicName>& names) {
    Versions all;
    for (const DynamicName& n : names)
        if (n.library) all[n.library].insert(n.version);
    return all;
}

}  // namespace

ElfLibrary::ElfLibrary(std::uint16_t machine) : machine_(machine), page_(machine == EM_AARCH64 ? 0x10000 : 0x1000) {
    constexpr std::uint64_t a = SHF_ALLOC, w = SHF_WRITE, x = SHF_EXECINSTR;
    sections_ = {Section{},
                 {".dynsym", SHT_DYNSYM, a, 8, sizeof(Elf64_Sym), dynstr},
                 {".dynstr", SHT_STRTAB, a, 1},
                 {".hash", SHT_HASH, a, 8, 4, dynsym},
                 {".gnu.version", SHT_GNU_versym, a, 2, 2, dynsym},
                 {".gnu.version_r", SHT_GNU_verneed, a, 8, 0, dynstr},
                 {".rela.dyn", SHT_RELA, a, 8, sizeof(Elf64_Rela), dynsym},
                 {".rodata", SHT_PROGBITS, a, 16},
                 {".text", SHT_PROGBITS, a | x, 16},
                 {".dynamic", SHT_DYNAMIC, a | w, 8, sizeof(Elf64_Dyn), dynstr},
                 {".got", SHT_PROGBITS, a | w, 8, 8},
                 {".data", SHT_PROGBITS, a | w, 16},
                 {".tbss", SHT_NOBITS, a | w | SHF_TLS, 16},
                 {".bss", SHT_NOBITS, a | w, 16},
                 {".symtab", SHT_SYMTAB, 0, 8, sizeof(Elf64_Sym), strtab},
                 {".strtab", SHT_STRTAB, 0, 1},
                 {".shstrtab", SHT_STRTAB, 0, 1}};
    for (SectionName strings : {dynstr, strtab, shstrtab}) add(strings, std::string_view("\0", 1), 1);
}

std::uint64_t ElfLibrary::add(SectionName to, std::string_view bytes, std::uint64_t alignment) {
    Section& s = sections_[to];
    s.alignment = std::max(s.alignment, alignment);
    s.bytes.resize(aligned(s.bytes.size(), alignment));
    const std::uint64_t at = s.bytes.size();
    s.bytes += bytes;
    s.size = s.bytes.size();
    return at;
}

std::uint64_t ElfLibrary::add_zeros(SectionName to, std::uint64_t size, std::uint64_t alignment) {
    Section& s = sections_[to];
    s.alignment = std::max(s.alignment, alignment);
    const std::uint64_t at = aligned(s.size, alignment);
    s.size = at + size;
    return at;
}

// Bytes are in the file without gaps for pages. Where a segment begins, its addresses are a page further than those of the bytes before it.
void ElfLibrary::give_addresses() {
    std::uint64_t offset = header_bytes, shift = 0;
    for (int i = dynsym; i < section_count; ++i) {
        Section& s = sections_[i];
        if (i == text || i == dynamic) shift += page_;
        if (i == shstrtab)
            for (Section& named : sections_) string_at(*this, shstrtab, named.name);
        offset = aligned(offset, s.alignment);
        s.offset = offset;
        if (s.flags & SHF_ALLOC) s.address = offset + shift;
        if (s.type != SHT_NOBITS) offset += s.size;
    }
}

Elf64_Phdr ElfLibrary::segment(SectionName first, SectionName last, std::uint32_t flags) const {
    const bool begins = first == dynsym;  // with the headers
    const Section& a = sections_[first];
    Elf64_Phdr p{};
    p.p_type = PT_LOAD, p.p_flags = flags, p.p_align = page_;
    p.p_offset = begins ? 0 : a.offset, p.p_vaddr = p.p_paddr = begins ? 0 : a.address;
    for (int i = first; i <= last; ++i) {
        const Section& s = sections_[i];
        if (s.flags & SHF_TLS) continue;
        if (s.type != SHT_NOBITS) p.p_filesz = s.offset + s.size - p.p_offset;
        p.p_memsz = s.address + s.size - p.p_vaddr;
    }
    return p;
}

std::vector<Elf64_Phdr> ElfLibrary::segments() const {
    const Section &d = sections_[dynamic], &t = sections_[tbss];
    const Elf64_Phdr stack{PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16};
    return {segment(dynsym, rodata, PF_R),
            segment(text, text, PF_R | PF_X),
            segment(dynamic, bss, PF_R | PF_W),
            {PT_DYNAMIC, PF_R | PF_W, d.offset, d.address, d.address, d.size, d.size, 8},
            t.size ? Elf64_Phdr{PT_TLS, PF_R, t.offset, t.address, t.address, 0, t.size, t.alignment} : stack,
            stack};
}

std::string ElfLibrary::file() const {
    const Section& last = sections_[shstrtab];
    Elf64_Ehdr header{};
    std::copy_n(ELFMAG, SELFMAG, header.e_ident);
    header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN, header.e_machine = machine_, header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header, header.e_phoff = sizeof header, header.e_phentsize = sizeof(Elf64_Phdr), header.e_phnum = segment_count;
    header.e_shoff = aligned(last.offset + last.size, 8), header.e_shentsize = sizeof(Elf64_Shdr), header.e_shnum = section_count;
    header.e_shstrndx = shstrtab;
    std::string bytes(bytes_of(header));
    for (const Elf64_Phdr& p : segments()) bytes += bytes_of(p);
    for (const Section& s : sections_) {
        if (s.type == SHT_NOBITS || s.type == SHT_NULL) continue;
        bytes.resize(s.offset);
        bytes += s.bytes;
    }
    bytes.resize(header.e_shoff);
    for (const Section& s : sections_) {
        const auto name = static_cast<std::uint32_t>(last.bytes.find('\0' + std::string(s.name) + '\0') + 1);
        bytes += bytes_of(Elf64_Shdr{s.type == SHT_NULL ? 0 : name, s.type, s.flags, s.address, s.offset, s.size, static_cast<std::uint32_t>(s.link), s.info,
                                     s.type == SHT_NULL ? 0 : s.alignment, s.entry_size});
    }
    return bytes;
}

void add_dynamic_tables(ElfLibrary& library, const std::vector<DynamicName>& names, std::size_t relocations) {
    const std::size_t count = names.size() + 1;
    const Versions versions = versions_of(names);
    std::map<std::string, std::uint16_t> index;  // by library and version
    std::string needs, indices(2, '\0');
    std::uint16_t next = 2;  // 0: hidden, 1: the library's own
    for (const auto& [name, all] : versions) {
        const bool final = name == versions.rbegin()->first;
        const Elf64_Verneed need{1, static_cast<Elf64_Half>(all.size()), string_at(library, dynstr, name), sizeof need,
                                 final ? 0 : static_cast<Elf64_Word>(sizeof need + all.size() * sizeof(Elf64_Vernaux))};
        needs += ElfLibrary::bytes_of(need);
        for (const std::string& version : all) {
            const Elf64_Vernaux one{system_v_hash(version), 0, next, string_at(library, dynstr, version),
                                    version == *all.rbegin() ? 0 : static_cast<Elf64_Word>(sizeof one)};
            needs += ElfLibrary::bytes_of(one);
            index[name + version] = next++;
        }
    }
    library[verneed].info = static_cast<std::uint32_t>(versions.size()), library[dynsym].info = 1;
    std::vector<std::uint32_t> buckets(count, 0), chains(count, 0);
    for (std::size_t i = 1; i < count; ++i) {
        const DynamicName& n = names[i - 1];
        string_at(library, dynstr, n.name);
        std::uint32_t& bucket = buckets[system_v_hash(n.name) % count];
        chains[i] = bucket, bucket = static_cast<std::uint32_t>(i);
        indices += ElfLibrary::bytes_of(n.library ? index[std::string(n.library) + n.version] : std::uint16_t{1});
    }
    for (std::uint32_t word : {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count)}) library.add(hash, ElfLibrary::bytes_of(word), 4);
    for (const auto& table : {buckets, chains})
        for (const std::uint32_t word : table) library.add(hash, ElfLibrary::bytes_of(word), 4);
    library.add(versym, indices, 2);
    library.add(verneed, needs, 8);
    library.add(dynsym, std::string(count * sizeof(Elf64_Sym), '\0'), 8);
    library.add(rela, std::string(relocations * sizeof(Elf64_Rela), '\0'), 8);
    library.add(dynamic, std::string((versions.size() + other_dynamic_entries) * sizeof(Elf64_Dyn), '\0'), 8);
}

void write_dynamic_tables(ElfLibrary& library, const std::vector<DynamicName>& names) {
    std::string symbols(ElfLibrary::bytes_of(Elf64_Sym{})), entries;
    for (const DynamicName& n : names)
        symbols += ElfLibrary::bytes_of(Elf64_Sym{string_at(library, dynstr, n.name), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT,
                                                  static_cast<Elf64_Half>(n.section), n.address, n.size});
    library[dynsym].bytes = symbols;
    const auto entry = [&](Elf64_Sxword tag, std::uint64_t value) { entries += ElfLibrary::bytes_of(Elf64_Dyn{tag, {value}}); };
    const Versions versions = versions_of(names);
    for (const auto& [name, all] : versions) entry(DT_NEEDED, string_at(library, dynstr, name));
    entry(DT_HASH, library[hash].address), entry(DT_STRTAB, library[dynstr].address), entry(DT_SYMTAB, library[dynsym].address);
    entry(DT_STRSZ, library[dynstr].size), entry(DT_SYMENT, sizeof(Elf64_Sym));
    entry(DT_RELA, library[rela].address), entry(DT_RELASZ, library[rela].size), entry(DT_RELAENT, sizeof(Elf64_Rela));
    entry(DT_VERSYM, library[versym].address), entry(DT_VERNEED, library[verneed].address), entry(DT_VERNEEDNUM, versions.size());
    entry(DT_FLAGS, DF_BIND_NOW), entry(DT_NULL, 0);
    library[dynamic].bytes = entries;
}

}  // namespace loopegg
