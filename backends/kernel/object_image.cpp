#include "backends/kernel/object_image.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace loopegg {
namespace {

struct Unsupported {
    std::string why;
};

std::uint64_t aligned(std::uint64_t n, std::uint64_t to) { return to > 1 ? (n + to - 1) / to * to : n; }

template <class T>
void write_at(char* place, T value) {
    std::memcpy(place, &value, sizeof value);
}
template <class T>
T read_at(const char* place) {
    T value;
    std::memcpy(&value, place, sizeof value);
    return value;
}
template <class T>
void write_signed(char* place, std::int64_t value) {
    if (value != static_cast<T>(value)) throw Unsupported{"a relocation that does not reach"};
    write_at(place, static_cast<T>(value));
}

// The addresses of a symbol, of its table entry, and of a stub that jumps to it, all without an addend.
struct SymbolAddresses {
    std::int64_t target, entry, stub;
    bool far;  // the symbol lies in another library
};

// A far call goes through a stub that jumps to the address in its table entry.
constexpr std::size_t stub_bytes = 16, entry_bytes = 8;

#if defined(__x86_64__)
constexpr Elf64_Half own_machine = EM_X86_64;

void write_stub(char* stub, const char* entry) {  // jmp *entry(%rip)
    stub[0] = '\xff', stub[1] = '\x25';
    write_signed<std::int32_t>(stub + 2, entry - (stub + 6));
}
void relocate(std::uint32_t type, char* place, std::int64_t addend, const SymbolAddresses& symbol) {
    const auto at = reinterpret_cast<std::int64_t>(place);
    switch (type) {
        case R_X86_64_NONE: return;
        case R_X86_64_64: return write_at(place, symbol.target + addend);
        case R_X86_64_PC64: return write_at(place, symbol.target + addend - at);
        case R_X86_64_PC32:
            if (symbol.far) throw Unsupported{"data of another library"};
            return write_signed<std::int32_t>(place, symbol.target + addend - at);
        case R_X86_64_PLT32: return write_signed<std::int32_t>(place, (symbol.far ? symbol.stub : symbol.target) + addend - at);
        case R_X86_64_32S: return write_signed<std::int32_t>(place, symbol.target + addend);
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX: return write_signed<std::int32_t>(place, symbol.entry + addend - at);
        default: throw Unsupported{"relocation " + std::to_string(type)};
    }
}
#elif defined(__aarch64__)
constexpr Elf64_Half own_machine = EM_AARCH64;

void write_stub(char* stub, const char* entry) {  // ldr x16, entry; br x16
    const std::int64_t words = (entry - stub) / 4;
    if (words >= 1 << 18 || words < -(1 << 18)) throw Unsupported{"a stub that does not reach"};
    write_at(stub, 0x58000010u | (static_cast<std::uint32_t>(words) & 0x7ffff) << 5);
    write_at(stub + 4, 0xd61f0200u);
}
void insert(char* place, std::uint32_t mask, unsigned shift, std::int64_t value) {
    const auto word = read_at<std::uint32_t>(place);
    write_at(place, (word & ~(mask << shift)) | (static_cast<std::uint32_t>(value) & mask) << shift);
}
void insert_page(char* place, std::int64_t to) {
    const std::int64_t pages = (to >> 12) - (reinterpret_cast<std::int64_t>(place) >> 12);
    if (pages >= 1 << 20 || pages < -(1 << 20)) throw Unsupported{"a page that does not reach"};
    insert(place, 3, 29, pages);
    insert(place, 0x7ffff, 5, pages >> 2);
}
void relocate(std::uint32_t type, char* place, std::int64_t addend, const SymbolAddresses& symbol) {
    const auto at = reinterpret_cast<std::int64_t>(place);
    const std::int64_t to = symbol.target + addend;
    switch (type) {
        case R_AARCH64_NONE: return;
        case R_AARCH64_ABS64: return write_at(place, to);
        case R_AARCH64_PREL64: return write_at(place, to - at);
        case R_AARCH64_PREL32: return write_signed<std::int32_t>(place, to - at);
        case R_AARCH64_ADR_PREL_PG_HI21: return insert_page(place, to);
        case R_AARCH64_ADR_GOT_PAGE: return insert_page(place, symbol.entry);
        case R_AARCH64_LD64_GOT_LO12_NC: return insert(place, 0xfff, 10, (symbol.entry & 0xfff) >> 3);
        case R_AARCH64_ADD_ABS_LO12_NC:
        case R_AARCH64_LDST8_ABS_LO12_NC: return insert(place, 0xfff, 10, to & 0xfff);
        case R_AARCH64_LDST16_ABS_LO12_NC: return insert(place, 0xfff, 10, (to & 0xfff) >> 1);
        case R_AARCH64_LDST32_ABS_LO12_NC: return insert(place, 0xfff, 10, (to & 0xfff) >> 2);
        case R_AARCH64_LDST64_ABS_LO12_NC: return insert(place, 0xfff, 10, (to & 0xfff) >> 3);
        case R_AARCH64_LDST128_ABS_LO12_NC: return insert(place, 0xfff, 10, (to & 0xfff) >> 4);
        case R_AARCH64_JUMP26:
        case R_AARCH64_CALL26: {
            const std::int64_t words = ((symbol.far ? symbol.stub : to) - at) >> 2;
            if (words >= 1 << 25 || words < -(1 << 25)) throw Unsupported{"a call that does not reach"};
            return insert(place, 0x3ffffff, 0, words);
        }
        default: throw Unsupported{"relocation " + std::to_string(type)};
    }
}
#else
constexpr Elf64_Half own_machine = EM_NONE;
void write_stub(char*, const char*) {}
void relocate(std::uint32_t, char*, std::int64_t, const SymbolAddresses&) { throw Unsupported{"this machine's relocations"}; }
#endif

// The tables of an object, which are checked to lie inside the object.
struct Object {
    std::string_view bytes;
    Elf64_Ehdr header{};
    std::vector<Elf64_Shdr> sections;
    std::vector<Elf64_Sym> symbols;
    std::string_view names;

    template <class T>
    std::vector<T> table(std::uint64_t offset, std::uint64_t count) const {
        if (offset > bytes.size() || count > (bytes.size() - offset) / sizeof(T)) throw Unsupported{"a table outside the object"};
        std::vector<T> all(count);
        if (count) std::memcpy(all.data(), bytes.data() + offset, count * sizeof(T));
        return all;
    }
    std::string_view content(const Elf64_Shdr& s) const {
        if (s.sh_offset > bytes.size() || s.sh_size > bytes.size() - s.sh_offset) throw Unsupported{"a section outside the object"};
        return bytes.substr(s.sh_offset, s.sh_size);
    }
    std::string name(const Elf64_Sym& s) const {
        const std::string_view rest = s.st_name < names.size() ? names.substr(s.st_name) : std::string_view();
        return std::string(rest.substr(0, rest.find('\0')));
    }

    explicit Object(std::string_view all) : bytes(all) {
        if (bytes.size() < sizeof header) throw Unsupported{"not an object"};
        std::memcpy(&header, bytes.data(), sizeof header);
        if (header.e_type != ET_REL || header.e_machine != own_machine) throw Unsupported{"not an object of this machine"};
        sections = table<Elf64_Shdr>(header.e_shoff, header.e_shnum);
        for (const Elf64_Shdr& s : sections)
            if (s.sh_type == SHT_SYMTAB) {
                symbols = table<Elf64_Sym>(s.sh_offset, s.sh_size / sizeof(Elf64_Sym));
                if (s.sh_link >= sections.size()) throw Unsupported{"no names"};
                names = content(sections[s.sh_link]);
            }
    }
};

}  // namespace

struct ObjectImage::Symbols {
    std::map<std::string, char*> defined;
};

std::unique_ptr<ObjectImage> ObjectImage::load(std::string_view bytes, std::string& why, const std::function<void*(const char* symbol)>& resolve) try {
    const Object o(bytes);
    // Code comes first. From the next page on comes what may be written: data, then the table entries. Stubs stand with the code.
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::vector<std::uint64_t> at(o.sections.size(), 0);
    std::uint64_t end = 0;
    auto lay_out = [&](bool code) {
        for (std::size_t i = 0; i < o.sections.size(); ++i) {
            const Elf64_Shdr& s = o.sections[i];
            if (!(s.sh_flags & SHF_ALLOC) || static_cast<bool>(s.sh_flags & SHF_EXECINSTR) != code) continue;
            if (s.sh_flags & SHF_TLS) throw Unsupported{"thread-local data"};
            at[i] = end = aligned(end, s.sh_addralign);
            end += s.sh_size;
        }
    };
    lay_out(true);
    const std::uint64_t stubs = end = aligned(end, 16);
    const std::uint64_t code_end = end = aligned(end + o.symbols.size() * stub_bytes, page);
    lay_out(false);
    const std::uint64_t entries = end = aligned(end, 16);
    end += o.symbols.size() * entry_bytes;
    std::vector<std::uint64_t> common(o.symbols.size(), 0);
    for (std::size_t i = 0; i < o.symbols.size(); ++i)
        if (o.symbols[i].st_shndx == SHN_COMMON) common[i] = end = aligned(end, o.symbols[i].st_value), end += o.symbols[i].st_size;

    std::unique_ptr<ObjectImage> image(new ObjectImage);
    image->symbols_ = std::make_unique<Symbols>();
    image->bytes_ = aligned(end, page);
    void* memory = mmap(nullptr, image->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Unsupported{"no memory"};
    image->memory_ = memory;
    char* base = static_cast<char*>(memory);
    for (std::size_t i = 0; i < o.sections.size(); ++i)
        if (const Elf64_Shdr& s = o.sections[i]; (s.sh_flags & SHF_ALLOC) && s.sh_type != SHT_NOBITS && s.sh_size)
            std::memcpy(base + at[i], o.content(s).data(), s.sh_size);

    std::vector<std::int64_t> address(o.symbols.size(), 0);
    std::vector<char> far(o.symbols.size(), 0);
    for (std::size_t i = 1; i < o.symbols.size(); ++i) {
        const Elf64_Sym& s = o.symbols[i];
        char* where = nullptr;
        if (s.st_shndx == SHN_UNDEF) {
            where = static_cast<char*>(resolve(o.name(s).c_str()));
            far[i] = 1;
            if (!where && ELF64_ST_BIND(s.st_info) != STB_WEAK) throw Unsupported{"'" + o.name(s) + "' is nowhere"};
        } else if (s.st_shndx == SHN_COMMON) {
            where = base + common[i];
        } else if (s.st_shndx == SHN_ABS) {
            where = reinterpret_cast<char*>(s.st_value);
        } else {
            if (s.st_shndx >= o.sections.size()) throw Unsupported{"a symbol of no section"};
            if (ELF64_ST_TYPE(s.st_info) == STT_GNU_IFUNC) throw Unsupported{"an indirect function"};
            where = base + at[s.st_shndx] + s.st_value;
        }
        address[i] = reinterpret_cast<std::int64_t>(where);
        write_at(base + entries + i * entry_bytes, address[i]);
        write_stub(base + stubs + i * stub_bytes, base + entries + i * entry_bytes);
        if (s.st_shndx != SHN_UNDEF && ELF64_ST_BIND(s.st_info) != STB_LOCAL) image->symbols_->defined[o.name(s)] = where;
    }
    for (const Elf64_Shdr& s : o.sections) {
        if (s.sh_type == SHT_REL) throw Unsupported{"relocations without addends"};
        if (s.sh_type != SHT_RELA || s.sh_info >= o.sections.size() || !(o.sections[s.sh_info].sh_flags & SHF_ALLOC)) continue;
        for (const Elf64_Rela& r : o.table<Elf64_Rela>(s.sh_offset, s.sh_size / sizeof(Elf64_Rela))) {
            const std::uint64_t symbol = ELF64_R_SYM(r.r_info);
            if (symbol >= o.symbols.size() || r.r_offset >= o.sections[s.sh_info].sh_size || at[s.sh_info] + r.r_offset + 8 > image->bytes_)
                throw Unsupported{"a relocation outside its section"};
            const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(r.r_info));
            char* place = base + at[s.sh_info] + r.r_offset;
            const auto entry = reinterpret_cast<std::int64_t>(base + entries + symbol * entry_bytes),
                       stub = reinterpret_cast<std::int64_t>(base + stubs + symbol * stub_bytes);
            relocate(type, place, r.r_addend, {address[symbol], entry, stub, far[symbol] != 0});
        }
    }
    if (code_end && mprotect(base, code_end, PROT_READ | PROT_EXEC) != 0) throw Unsupported{"memory that may not be run"};
    __builtin___clear_cache(base, base + code_end);
    return image;
} catch (const Unsupported& u) {
    why = u.why;
    return nullptr;
}

ObjectImage::~ObjectImage() {
    if (memory_) munmap(memory_, bytes_);
}

void* ObjectImage::find(const std::string& symbol) const {
    auto found = symbols_->defined.find(symbol);
    return found == symbols_->defined.end() ? nullptr : found->second;
}

}  // namespace loopegg
